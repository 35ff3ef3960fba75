"""The demo's story: stream, prove, damage, find, repair, prove again; each step is a DAG run of Airflow's scheduler."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bin.lib.demo.following import explain, follow, follow_all, runs_of, wait_for_run
from bin.lib.demo.telling import heading, say
from bin.lib.local.rest import Rest
from twinstream.errors import EnvironmentMissing

PIPELINE = "page_views"
FAMILIES = ("microbatch", "recompute", "reconcile", "repair")
# Airflow asks again when it is answered in the very moment in which it asks.
READING_SECONDS = 5.0
DAGS = {family: f"{PIPELINE}__{family}" for family in FAMILIES}


@dataclass
class Story:
    """Tells it step by step; the verdicts are what remains."""

    rest: Rest
    root: Path
    settings: dict[str, str]
    look: Callable[[], None] = lambda: None
    """Called when the damage has been found and nobody has answered yet."""
    verdicts: list[str] = field(default_factory=list)
    ended: bool = False

    def tell(self) -> bool:
        """Whether every step ended as it must."""
        heading("1. Events for two pipelines: some come late, some are broken")
        self._command("generate", PIPELINE, "--events=120000", "--late=0.02", "--poison=0.001", "--seed=7")
        self._command("generate", "orders", "--events=40000", "--late=0.01", "--poison=0.001", "--seed=7")
        heading("2. Airflow drains them as transactions, each committed exactly once")
        good = self._drained()
        heading("3. Are these numbers right? Recomputed from the source; the new batch result wakes the reconciliation")
        known = runs_of(self.rest, DAGS["reconcile"])
        good &= self._succeeded(DAGS["recompute"], self.rest.trigger(DAGS["recompute"]))
        good &= self._reconciled("after streaming", wait_for_run(self.rest, DAGS["reconcile"], known))
        heading("4. Somebody edits the stream's table behind our back; the next reconciliation finds it")
        self._damage()
        known = runs_of(self.rest, DAGS["repair"])
        good &= not self._reconciled("after the damage", self.rest.trigger(DAGS["reconcile"]))
        self.look()
        heading("5. That called for a repair, which waits for a person to approve")
        good &= self._repaired(wait_for_run(self.rest, DAGS["repair"], known))
        heading("6. And once more: is it right now?")
        good &= self._reconciled("after the repair", self.rest.trigger(DAGS["reconcile"]))
        return good

    def _drained(self) -> bool:
        """Unpausing also wakes schedules and the watchers of new data: whichever run comes first does the work."""
        drains = (DAGS["microbatch"], "orders__microbatch")
        wanted = {*DAGS.values(), *drains}
        self.rest.wait_for_dags(wanted)
        if errors := self.rest.import_errors():
            raise EnvironmentMissing(f"Airflow could not import everything: {errors}", next_step="Mend these files.")
        for dag in sorted(wanted):
            self.rest.unpause(dag)
        say(f"Unpaused {', '.join(sorted(wanted))}")
        for dag in drains:
            self.rest.trigger(dag)
        return follow_all(self.rest, *drains)

    def _succeeded(self, dag: str, run: str, asked: Callable[[str], None] | None = None) -> bool:
        good = bool(follow(self.rest, dag, run, asked)["state"] == "success")
        if not good:
            explain(self.rest, dag, run)
        return good

    def _reconciled(self, when: str, run: str) -> bool:
        """Whether the run found stream and batch to be equal; a difference fails it, which is what it is for."""
        found = follow(self.rest, DAGS["reconcile"], run)
        note = found.get("note")
        if not note:
            explain(self.rest, DAGS["reconcile"], run)
        self.verdicts.append(f"{when}: {note or found['state']}")
        return bool(found["state"] == "success")

    def _repaired(self, run: str) -> bool:
        def approve(task: str) -> None:
            say("Approving, as a person would in Airflow's page under Required Actions")
            time.sleep(READING_SECONDS)
            self.rest.approve(DAGS["repair"], run, task)

        return self._succeeded(DAGS["repair"], run, approve)

    def _damage(self) -> None:
        table = Path(self.settings["TWINSTREAM_HOME"]) / "tables" / PIPELINE
        self._call([sys.executable, str(self.root / "bin" / "lib" / "damage.py"), str(table)])

    def _command(self, *arguments: str) -> None:
        say(f"$ bin/twinstream {' '.join(arguments)}")
        self._call([str(self.root / "bin" / "twinstream"), *arguments])

    def _call(self, command: list[str]) -> None:
        done = subprocess.run(command, env=os.environ | self.settings, capture_output=True, text=True, check=False)
        for line in (done.stdout + done.stderr).splitlines():
            say(line)
        if done.returncode != 0:
            raise EnvironmentMissing(f"{command[0]} failed.", next_step="What it said is above.")
