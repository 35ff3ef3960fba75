"""Opening Spark with the settings that results depend on."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.driver import driver_settings
from twinstream.errors import EnvironmentMissing
from twinstream.settings import TIME_ZONE, Settings
from twinstream.shipping import engine_zip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULT_SETTINGS = {
    "spark.sql.session.timeZone": TIME_ZONE,
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Whatever else a cluster sets, these decide about results and are set on every session."""

SESSION_SETTINGS = {
    # Python functions that read straight from a Parquet scan hang without this (SPARK-58241).
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    # A small group is one file, a large one is written by all cores.
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "4m",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Paths are named one by one: to list them needs no Spark job of its own.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}
CLASSIC_SETTINGS = {
    # Where in our code a column was made is of no use to users, and telling the JVM takes longer than making it.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
FORGETFUL = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "50",
}
"""Spark remembers a thousand jobs, and a thousand queries with their plans, to show them: tens of megabytes of a small
heap, and of no use where nothing shows them."""
LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    **FORGETFUL,
    "spark.ui.showConsoleProgress": "false",
    "spark.speculation": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


ON_THIS_MACHINE = ("local", "spark://127.", "spark://localhost")
"""Masters whose executors reach a driver that listens on loopback, where nobody else reaches it."""


def open_session(settings: Settings, name: str, extra: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark session for `settings.master`: a local or cluster master, or `sc://…` for Spark Connect."""
    connect = settings.master.startswith("sc://")
    if is_submitted():
        session = _submitted(name, extra or {})
        if session.sparkContext.uiWebUrl:
            print(f"Spark UI: {session.sparkContext.uiWebUrl}", file=sys.stderr, flush=True)
    else:
        session = _connect(settings) if connect else _classic(settings, name, extra or {})
    if not connect and not (session.sparkContext.master or "").startswith("local"):
        # What --py-files would do, for the executors alone: the driver has the engine with the files that belong to it.
        session.sparkContext.addPyFile(str(engine_zip(settings.home / "code")))
    for key, value in (RESULT_SETTINGS | SESSION_SETTINGS).items():
        session.conf.set(key, value)
    quiet()
    return session


def quiet() -> None:
    """Spark's Python side logs stack traces beside the errors that it raises; the errors are enough."""
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_from_py4j)


def is_submitted() -> bool:
    """Whether spark-submit started this program: then master, memory and jars are its business."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _not_from_py4j(record: logging.LogRecord) -> bool:
    """Py4J uses the root logger when Spark dies."""
    return "py4j" not in record.pathname


def java_home() -> str | None:
    """Where Java is, by JAVA_HOME or the path; None if it is not there."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return home
    found = shutil.which("java")
    return str(Path(found).resolve().parent.parent) if found else None


def require_java() -> str:
    """Where Java is; a clear error if it is nowhere."""
    home = java_home()
    if home is None:
        raise EnvironmentMissing(
            "Java was not found, and Spark needs it.",
            next_step="Install Java 17 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME, "
            "then run `twinstream doctor`.",
        )
    return home


def find_jars(settings: Settings) -> list[str]:
    """The jars beside pyspark's own: Delta and the Kafka connector."""
    if settings.jars is None or not settings.jars.is_dir():
        return []
    return sorted(str(path) for path in settings.jars.glob("*.jar"))


def _submitted(name: str, extra: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"twinstream {name}")
    for key, value in (CLASSIC_SETTINGS | RESULT_SETTINGS | SESSION_SETTINGS | dict(extra)).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _classic(settings: Settings, name: str, extra: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 2
    builder = SparkSession.builder.master(settings.master).appName(f"twinstream {name}")
    options = {"spark.driver.memory": settings.driver_memory, "spark.log.level": "ERROR", **LOCAL_SETTINGS}
    if not settings.master.startswith(ON_THIS_MACHINE):
        del options["spark.driver.host"], options["spark.driver.bindAddress"]
    if settings.master.startswith("local"):
        options["spark.sql.shuffle.partitions"] = str(max(2, cores * 2))
    jars = find_jars(settings)
    if jars and settings.master.startswith("local"):
        options |= driver_settings(jars)
    elif jars:
        options["spark.jars"] = ",".join(jars)
    else:
        options.pop("spark.sql.extensions")
        options.pop("spark.sql.catalog.spark_catalog")
    for key, value in (options | CLASSIC_SETTINGS | RESULT_SETTINGS | SESSION_SETTINGS | dict(extra)).items():
        builder = builder.config(key, value)
    log = settings.home / "logs" / "spark.log"
    try:
        with _stderr_to(log):
            return builder.getOrCreate()
    except Exception as error:
        raise EnvironmentMissing(
            f"Spark did not start on {settings.master}: {str(error).splitlines()[0]}",
            next_step=f"Its own words are in {log}; `twinstream doctor` shows what is missing.",
        ) from error


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Lets the JVM inherit a log file as its standard error: what it says there is for experts, not for every user."""
    log.parent.mkdir(parents=True, exist_ok=True)
    saved = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


def _connect(settings: Settings) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        session: SparkSession = SparkSession.builder.remote(settings.master).getOrCreate()
    except Exception as error:
        raise EnvironmentMissing(
            f"Spark Connect does not answer at TWINSTREAM_MASTER: {str(error).splitlines()[0]}",
            next_step="Start the Connect server, or set TWINSTREAM_MASTER to local[*].",
        ) from error
    return session
