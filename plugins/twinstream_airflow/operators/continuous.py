"""Continuous mode under Airflow's supervision: started, watched without a worker, restarted, stopped in order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from twinstream.ledger.journal import STOP_ASKED
from twinstream_airflow import settings
from twinstream_airflow.dags.assets import stream_asset
from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import SparkOperator, asked_by, attempt_of, number, yes
from twinstream_airflow.running.failures import MAY_PASS, as_airflow, in_airflows_words
from twinstream_airflow.triggers.continuous import LAPSES, ContinuousTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.engine import Engine
    from twinstream.ledger import Generation

HEALTHY_SECONDS = 600.0
"""A query that was up for so long before it died has its restarts counted anew."""
MOST_DELAY = timedelta(minutes=10)
RESTARTED = MAY_PASS | {"ProcessingFailed"}
"""Errors after which a query is started again; all others need a person."""


@dataclass(frozen=True)
class Watch:
    """What the task knows of its query from one visit to the next."""

    supervision: int = 0
    started: float = 0.0
    restarts: int = 0
    deadline: float | None = None


class ContinuousOperator(SparkOperator):
    """Keeps one continuous query of a pipeline up.

    The query is a process of its own on the worker that started it. The ledger is all that binds the two: a trigger
    renews that the query is wanted, the query says that it is alive. So a triggerer, a worker or Airflow as a whole
    can go away: the query goes on for a while, and stops by itself when nobody has come back for it.
    """

    template_fields: Sequence[str] = ("pipeline", "spark", "every", "seconds", "drain")
    command = "continuous"

    def __init__(
        self, *, every: str, visit: timedelta, restarts: int = 5, restart_delay: timedelta = timedelta(seconds=10),
        seconds: float | str | None = None, drain: bool | str = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        self.every = every
        self.visit = visit
        self.restarts = restarts
        self.restart_delay = restart_delay
        self.seconds = seconds
        self.drain = drain
        self._watching = 0

    def work(self, context: Context) -> Any:
        seconds = number(self.seconds)
        watch = Watch(deadline=None if seconds is None else time.time() + seconds)
        with self.engine() as engine:
            generation = self._generation(engine)
            if (found := self._supervised(engine, generation, context)) is not None:
                self._wait(replace(watch, supervision=found, started=time.time()))
        return self._start(context, watch)

    def visited(self, context: Context, event: Mapping[str, Any], watch: Mapping[str, Any]) -> Any:
        """The trigger has something to tell, or it is time to see whether all is as it should be."""
        return self.told(lambda: self._visited(context, event, Watch(**watch)))

    def again(self, context: Context, event: Any, watch: Mapping[str, Any]) -> Any:
        """The delay before a restart is over."""
        return self.told(lambda: self._start(context, Watch(**watch)))

    def on_kill(self) -> None:
        """Ended in the middle of a visit, by a person or by Airflow."""
        if self._watching:
            from twinstream_airflow.triggers.continuous import let_go

            let_go(settings.of_task(), self._watching)

    def _visited(self, context: Context, event: Mapping[str, Any], watch: Watch) -> Any:
        from twinstream.runtime import supervision
        from twinstream_airflow.triggers.continuous import look_after

        self._watching = watch.supervision
        if event["state"] == "visit":
            with in_airflows_words():
                seconds = self.visit.total_seconds() * LAPSES
                event = look_after(settings.of_task(), watch.supervision, seconds) or event
        if event["state"] == "visit":
            self._see_to(context, watch)
            self._wait(watch)
        with self.engine() as engine:
            wanted = supervision.look(engine.ledger, watch.supervision).wanted
            supervision.end(engine.ledger, watch.supervision)
        return self._ended(context, event, watch, wanted)

    def _see_to(self, context: Context, watch: Watch) -> None:
        """Tells where the query stands, and ends it where the definition is another one now.

        A definition that cannot be read just now, or a ledger that is down, is no reason to end anything.
        """
        from twinstream.errors import DefinitionChanged
        from twinstream_airflow.triggers.continuous import let_go

        try:
            with self.engine() as engine:
                self._note(context, engine)
                self._generation(engine)
        except AirflowException as error:
            if not isinstance(error.__cause__, DefinitionChanged):
                self.log.warning("%s", error)
                return
            let_go(settings.of_task(), watch.supervision)
            raise

    def _ended(self, context: Context, event: Mapping[str, Any], watch: Watch, wanted: bool) -> Any:
        from twinstream.runtime.continuous import PAUSE, TOLD

        if event["state"] == "failed":
            error = {"untouched": "", **event["error"]}
            if error["kind"] not in RESTARTED:
                raise as_airflow(error)
            self._restart(context, watch, error["what"].rstrip("."))
        if event["state"] == "gone":
            self._restart(context, watch, event["why"])
        ended = event.get("said", {}).get("ended")
        if event["state"] == "lapsed" or ended == PAUSE or (ended == TOLD and not wanted):
            self.log.info("%s goes on: it was stopped while nobody looked after it.", self.pipeline)
            return self._start(context, watch)
        if ended == TOLD:
            self._restart(context, watch, "its process was told to end")
        return self._finished(context, watch, str(ended))

    def _finished(self, context: Context, watch: Watch, ended: str) -> dict[str, Any]:
        with self.engine() as engine:
            generation = engine.any_generation(engine.definition(self.pipeline))
        known: dict[str, Any] = {"generation": generation.number, "frontier": generation.frontier}
        context["outlet_events"][stream_asset(self.pipeline)].extra = known
        note(context, f"Ended: {ended}. Frontier {generation.frontier}")
        return {**known, "ended": ended, "restarts": watch.restarts}

    def _start(self, context: Context, watch: Watch) -> Any:
        """Starts the query and lets the worker go, unless somebody has asked for a stop while none was up."""
        from twinstream.runtime import supervision
        from twinstream.runtime.continuous import ASKED, DEADLINE
        from twinstream_airflow.running.detached import DetachedJob

        with in_airflows_words():
            known = settings.of_task(self.pipeline)
        left = None if watch.deadline is None else watch.deadline - time.time()
        if left is not None and left <= 0:
            return self._finished(context, watch, DEADLINE)
        with self.engine() as engine:
            generation = self._generation(engine)
            before = engine.ledger.runs.get(watch.supervision) if watch.supervision else None
            asked = engine.ledger.journal.last(generation.id, (STOP_ASKED,)) if before else None
            if before and asked and int(str(asked["at"])) > before.started_at:
                return self._finished(context, watch, ASKED)
            seconds = self.visit.total_seconds() * LAPSES
            begun = supervision.begin(engine.ledger, generation, seconds, asked_by(context))
        self._watching = begun
        who = attempt_of(context) | {supervision.NAMED: str(begun)}
        job = DetachedJob(self._master(), self.command, self._arguments(left), known, who, lambda _: None)
        pid = job.start(known.home / "logs" / "continuous" / f"{self.pipeline}-{begun}.log")
        with self.engine() as engine:
            supervision.started(engine.ledger, begun, pid)
        note(context, f"Streaming since txid {generation.frontier}, supervision {begun}")
        self._wait(replace(watch, supervision=begun, started=time.time()))

    def _arguments(self, left: float | None) -> list[str]:
        how = ["--available-now"] if yes(self.drain) else [f"--every={self.every}"]
        return [self.pipeline, *how, "--standby", "--json", *([] if left is None else [f"--seconds={left:.0f}"])]

    def _restart(self, context: Context, watch: Watch, why: str) -> NoReturn:
        """Starts it again after a while, unless that did not help often enough."""
        healthy = time.time() - watch.started > HEALTHY_SECONDS
        restarts = 0 if healthy else watch.restarts
        if restarts >= self.restarts:
            raise AirflowFailException(
                f"The query of {self.pipeline} was started {restarts + 1} times in a row, and each time it ended; at "
                f"last: {why}. What was committed stays. What it said is in {self._log(watch)}. Mend the cause, then "
                "trigger this DAG again: it goes on behind the last txid."
            )
        delay = min(self.restart_delay * 2**restarts, MOST_DELAY)
        self.log.warning("The query of %s ended: %s. It is started again in %s.", self.pipeline, why, delay)
        note(context, f"Restart {restarts + 1} of {self.restarts}: {why}")
        self._watching = 0
        kept = {"watch": asdict(replace(watch, restarts=restarts + 1))}
        self.defer(trigger=TimeDeltaTrigger(delay), method_name="again", kwargs=kept)

    def _wait(self, watch: Watch) -> NoReturn:
        """Lets the worker go; the trigger looks after the query."""
        self._watching = 0
        trigger = ContinuousTrigger(self.pipeline, watch.supervision, self.visit.total_seconds())
        self.defer(trigger=trigger, method_name="visited", kwargs={"watch": asdict(watch)})

    def _supervised(self, engine: Engine, generation: Generation, context: Context) -> int | None:
        """The supervision of an earlier try of this task that is alive; skips where another DAG run has one."""
        from twinstream.runtime.supervision import KIND, look

        mine = asked_by(context)
        _, alive = engine.ledger.runs.alive(generation.id, KIND)
        for run in alive:
            found = look(engine.ledger, run.id)
            if found.over or found.gone:
                continue
            theirs = dict(run.context)
            if theirs == mine:
                self.log.info("The query of an earlier try of this task is alive: it goes on.")
                return run.id
            if context["ti"].get_dagrun_state(theirs["dag_id"], theirs["run_id"]) == "running":
                said = f"{self.pipeline} is streamed already, by the run {theirs['run_id']}"
                note(context, said)
                raise AirflowSkipException(f"{said}.")
        return None

    def _generation(self, engine: Engine) -> Generation:
        from twinstream.errors import DefinitionChanged

        try:
            return engine.generation(engine.definition(self.pipeline), create=True)
        except DefinitionChanged as error:
            error.next_step = f"Undo the change, or run {self.pipeline}__replay; then this DAG goes on."
            raise

    def _master(self) -> Any:
        from twinstream_airflow.running.where import ConnectServer, resolve

        found = resolve(self.spark)
        if isinstance(found, ConnectServer):
            raise AirflowFailException(
                f"Continuous mode needs a Spark of its own, and the Airflow connection {self.spark!r} is a Spark "
                "Connect server. Nothing was started. Name a connection of type Spark in Orchestration(spark=…)."
            )
        return found

    def _note(self, context: Context, engine: Engine) -> None:
        """Where the query stands, for whoever looks at the run."""
        from twinstream.runtime.supervision import streaming

        generation = engine.any_generation(engine.definition(self.pipeline))
        run = streaming(engine.ledger, generation.id)
        facts = (run.result or {}) if run else {}
        said = f"Streaming, frontier {generation.frontier}" if run else "Coming up, or standing by for another runner"
        note(context, f"{said}, {facts['behind']:.0f} records behind" if "behind" in facts else said)

    def _log(self, watch: Watch) -> Path:
        return settings.without_ledger().home / "logs" / "continuous" / f"{self.pipeline}-{watch.supervision}.log"
