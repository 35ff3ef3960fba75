"""A command of the engine by spark-submit, through the Spark provider's hook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowFailException

from twinstream.driver import driver_settings
from twinstream.spark import LOCAL_SETTINGS, find_jars
from twinstream_airflow.running import guard
from twinstream_airflow.running.entry_points import entry_point
from twinstream_airflow.running.job import Job
from twinstream_airflow.running.where import Master

_ONLY_LOCAL = ("spark.driver.host", "spark.driver.bindAddress", "spark.ui.enabled")
_DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")


class GuardedHook(SparkSubmitHook):
    """The provider's hook with a guard around spark-submit: neither its JVM nor its Python driver outlives the task."""

    def __init__(self, hear: Callable[[Any], Iterator[str]], **options: Any) -> None:
        super().__init__(**options)
        self._hear = hear

    def _get_spark_binary_path(self) -> list[str]:
        name = self._connection["spark_binary"]
        search = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        found = shutil.which(name, path=search)
        if found is None:
            raise AirflowFailException(
                f"{name} is not on this worker's PATH. Nothing was submitted. Install pyspark, or Spark itself, there."
            )
        return [sys.executable, guard.__file__, found]

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._hear(itr))


class SubmitJob(Job):
    """A command as a Spark application of its own on a master."""

    def __init__(self, master: Master, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._master = master
        self._hook: GuardedHook | None = None

    def _process(self) -> subprocess.Popen[Any] | None:
        return self._hook._submit_sp if self._hook else None

    def _start(self, environment: Mapping[str, str]) -> None:
        """A JVM is not started before it is known that it is needed."""

    def _wait(self, environment: Mapping[str, str]) -> None:
        self._hook = self._new_hook()
        self._hook.submit(
            str(entry_point(self.command)), stdin=subprocess.PIPE, start_new_session=True, env=dict(environment)
        )

    def _new_hook(self) -> GuardedHook:
        jars = find_jars(self.settings)
        conf = self._configuration(bool(jars))
        if jars:
            conf |= driver_settings(jars) if self._master.is_local else {"spark.jars": ",".join(jars)}
        return GuardedHook(
            partial(self._heard),
            conn_id=self._master.connection,
            name=f"twinstream {self.command} {self.arguments[0]}",
            conf=conf,
            driver_memory=self.settings.driver_memory,
            application_args=self.arguments,
        )

    def _configuration(self, has_delta: bool) -> dict[str, str]:
        leave_out = () if self._master.is_local else _ONLY_LOCAL
        found = {name: value for name, value in LOCAL_SETTINGS.items() if name not in leave_out}
        if not has_delta:
            found = {name: value for name, value in found.items() if name not in _DELTA}
        if self._master.is_local:
            found["spark.sql.shuffle.partitions"] = str(max(2, (os.cpu_count() or 2) * 2))
        return {**found, "spark.log.level": "ERROR"}
