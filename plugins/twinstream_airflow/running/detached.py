"""A command by spark-submit that outlives the task that started it, on a leash."""

from __future__ import annotations

import logging
import subprocess
import time
from pathlib import Path

from twinstream_airflow.running.entry_points import entry_point
from twinstream_airflow.running.submit import SubmitJob

log = logging.getLogger(__name__)

LEASH_SECONDS = 300
"""How long a runner that hangs, or that ends its last batch, is let live."""


KEPT_SECONDS = 7 * 86_400
"""How long what it said is kept."""


class DetachedJob(SubmitJob):
    """Started, not waited for: the ledger says how it is, its own guard ends it if it does not end by itself."""

    def start(self, file: Path) -> int:
        """Starts it, with what it says in a log; returns the process that all of it ends with."""
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.iterdir():
            if time.time() - old.stat().st_mtime > KEPT_SECONDS:
                old.unlink(missing_ok=True)
        leash = file.with_suffix(".leash")
        leash.touch()
        environment = self._environment(file.with_suffix(".json"))
        command = self._new_hook()._build_spark_submit_command(str(entry_point(self.command)))
        with file.open("ab") as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**environment, "TWINSTREAM_LEASH": f"{LEASH_SECONDS}:{leash}"},
            )
        log.info("%s %s is process %s; what it says is in %s", self.command, self.arguments[0], process.pid, file)
        return process.pid
