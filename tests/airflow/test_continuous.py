"""A continuous query under Airflow's supervision, on a real ledger; e2e/ runs the query itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.definitions import change
from tests.airflow.test_operators import TaskInstance, engine, execute, task_of
from tests.kafka.home import FILES, TOPIC
from twinstream.ledger.journal import STOP_ASKED
from twinstream.ledger.runs import CONTINUOUS, Wanted
from twinstream.runtime import supervision
from twinstream.runtime.holder import new_holder

RUNNING = {"first": "running", "second": "running"}


@pytest.fixture
def streamed(pipelines: Path) -> Path:
    """page_views from a topic."""
    change(pipelines, "page_views", (FILES, TOPIC.format(topic="views")), ("FileSource, ", "KafkaSource, "))
    return pipelines


@dataclass
class Instance(TaskInstance):
    dag_id: str = "page_views__continuous"
    run_id: str = "first"
    task_id: str = "stream"

    def get_dagrun_state(self, dag_id: str, run_id: str) -> str:
        return RUNNING.get(run_id, "failed")


@dataclass
class Scene:
    """The task, and the runners that it started: what would be a spark-submit is only noted here."""

    started: list[list[str]]

    def run(self, method: str = "execute", run_id: str = "first", **options: Any) -> tuple[Any, Any]:
        """What the task defers to, and the keyword arguments that it comes back with; or what it returned."""
        from airflow.sdk.exceptions import TaskDeferred

        task = task_of("page_views__continuous", "stream")
        task.every, task.seconds, task.drain = "5 seconds", options.pop("seconds", None), options.pop("drain", False)
        work = type(task).execute.__wrapped__ if method == "execute" else getattr(type(task), method)
        context = {"ti": Instance(task, run_id=run_id), "task": task, "params": {}, "outlet_events": _Events()}
        try:
            return work(task, context, **options), None
        except TaskDeferred as deferred:
            return deferred.trigger, deferred.kwargs

    def visited(self, state: str = "visit", watch: Any = None, **event: Any) -> tuple[Any, Any]:
        return self.run("visited", event={"state": state, **event}, watch=watch["watch"])


class _Events(dict[Any, Any]):
    def __missing__(self, key: Any) -> Any:
        self[key] = type("Event", (), {"extra": {}})()
        return self[key]


@pytest.fixture
def scene(streamed: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    from twinstream_airflow.running.detached import DetachedJob

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    started: list[list[str]] = []

    def note(job: DetachedJob, file: Path) -> int:
        started.append(job.arguments)
        return os.getpid()

    monkeypatch.setattr(DetachedJob, "start", note)
    return Scene(started)


@pytest.fixture
def ledger(scene: Scene) -> Iterator[Any]:
    opened = engine()
    yield opened.ledger
    opened.close()


def says(ledger: Any, id: int, **said: Any) -> None:
    """What the runner would note."""
    found = supervision.look(ledger, id)
    ledger.runs.note(found.run, {"holder": new_holder(), "seen": found.now, **said})


def look_after(trigger: Any) -> Any:
    from twinstream_airflow import settings
    from twinstream_airflow.triggers.continuous import look_after as look

    return look(settings.without_ledger(), trigger.supervision, 60)


def test_only_a_pipeline_that_reads_topics_has_a_continuous_dag(streamed: Path) -> None:
    from twinstream_airflow.dags.build import all_dags

    assert [name for name in all_dags() if name.endswith("__continuous")] == ["page_views__continuous"]
    dag: Any = all_dags()["page_views__continuous"]
    assert type(dag.timetable).__name__ == "NullTimetable"
    assert {name: dag.params[name] for name in dag.params} == {"every": "5 seconds", "seconds": None, "drain": False}
    change(streamed, "page_views", ('owner="web"', 'owner="web", mode="continuous"'))
    dags: Any = all_dags()
    assert type(dags["page_views__continuous"].timetable).__name__ == "OnceTimetable"
    assert "stream" in dags["page_views__replay"].task_ids


def test_a_pipeline_of_files_cannot_be_continuous(pipelines: Path) -> None:
    from twinstream_airflow.dags.build import all_dags

    change(pipelines, "page_views", ('owner="web"', 'owner="web", mode="continuous"'))
    assert "mode='continuous') streams topics; page_views reads files" in str(all_dags()["page_views__broken"].doc_md)


def test_it_starts_one_query_that_stands_by_and_lets_the_worker_go(scene: Scene, ledger: Any) -> None:
    trigger, kept = scene.run(seconds=90)
    (started,) = scene.started
    assert started[:-1] == ["page_views", "--every=5 seconds", "--standby", "--json"]
    left = int(started[-1].removeprefix("--seconds="))
    assert 60 < left <= 90, "what is left of the time when it starts"
    assert (trigger.pipeline, trigger.visit_seconds) == ("page_views", 120.0)
    assert kept["watch"]["supervision"] == trigger.supervision
    assert supervision.look(ledger, trigger.supervision).wanted


def test_asked_to_drain_the_query_takes_what_is_there(scene: Scene) -> None:
    scene.run(drain="True")
    assert scene.started[0][1] == "--available-now"


def test_a_second_run_starts_no_second_query_and_a_cleared_one_goes_on_with_its_own(scene: Scene) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    first, _ = scene.run()
    with pytest.raises(AirflowSkipException, match="page_views is streamed already, by the run first"):
        scene.run(run_id="second")
    again, _ = scene.run()
    assert again.supervision == first.supervision
    assert len(scene.started) == 1


def test_the_query_of_a_run_that_was_marked_meanwhile_is_not_waited_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = scene.run()
    monkeypatch.setitem(RUNNING, "first", "failed")
    second, _ = scene.run(run_id="second")
    assert second.supervision != first.supervision
    assert len(scene.started) == 2


def test_as_long_as_it_shows_itself_it_is_wanted_for_some_more_time(scene: Scene, ledger: Any) -> None:
    trigger, _ = scene.run()
    says(ledger, trigger.supervision)
    supervision.renew(ledger, trigger.supervision, 1)
    assert look_after(trigger) is None
    assert (
        supervision.look(ledger, trigger.supervision).run.expires_at
        > supervision.look(ledger, trigger.supervision).now + 30_000_000
    )


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"ended": "stop asked"}, "ended"),
        ({"error": {"kind": "SparkLost", "what": "Spark is gone.", "next_step": ""}}, "failed"),
        ({"holder": "nobody", "seen": 1}, "gone"),
    ],
)
def test_what_the_trigger_tells(scene: Scene, ledger: Any, said: dict[str, Any], state: str) -> None:
    trigger, _ = scene.run()
    says(ledger, trigger.supervision, **said)
    assert look_after(trigger)["state"] == state


def test_the_trigger_fires_once_and_can_be_moved_to_another_triggerer(scene: Scene, ledger: Any) -> None:
    from twinstream_airflow.triggers.continuous import ContinuousTrigger

    trigger, _ = scene.run()
    path, options = trigger.serialize()
    assert path == "twinstream_airflow.triggers.continuous.ContinuousTrigger"
    moved = ContinuousTrigger(**options)
    says(ledger, trigger.supervision, ended="drained")

    async def fired() -> list[Any]:
        return [event.payload async for event in moved.run()]

    [event] = asyncio.run(fired())
    assert (event["state"], event["said"]["ended"]) == ("ended", "drained")


def test_a_task_that_is_marked_or_cleared_lets_go_of_the_query(scene: Scene, ledger: Any) -> None:
    trigger, _ = scene.run()
    asyncio.run(trigger.on_kill())
    assert not supervision.look(ledger, trigger.supervision).wanted


def test_a_query_that_dies_is_started_again_later_and_later_and_at_last_the_task_fails_in_one_line(
    scene: Scene, ledger: Any
) -> None:
    from airflow.providers.standard.triggers.temporal import DateTimeTrigger
    from airflow.sdk.exceptions import AirflowFailException
    from airflow.sdk.timezone import utcnow

    _, kept = scene.run()
    delays = []
    for _ in range(5):
        trigger, waiting = scene.visited("gone", kept, why="its process is gone")
        assert isinstance(trigger, DateTimeTrigger)
        at: Any = trigger.moment
        delays.append(round((at - utcnow()).total_seconds()))
        _, kept = scene.run("again", event=None, watch=waiting["watch"])
    assert delays == [10, 20, 40, 80, 160]
    assert len(scene.started) == 6
    with pytest.raises(AirflowFailException, match=r"started 6 times in a row.*its process is gone.*trigger this DAG"):
        scene.visited("gone", kept, why="its process is gone")
    assert ledger.runs.alive(1, supervision.KIND)[1] == []


def test_a_stop_that_is_asked_for_while_none_is_up_is_heard(scene: Scene, ledger: Any) -> None:
    _, kept = scene.run()
    _, waiting = scene.visited("gone", kept, why="its process is gone")
    ledger.journal.add(1, STOP_ASKED, "enough")
    result, _ = scene.run("again", event=None, watch=waiting["watch"])
    assert (result["ended"], len(scene.started)) == ("stop asked", 1)


def test_a_process_that_ended_before_it_came_up_is_noticed(scene: Scene, ledger: Any) -> None:
    trigger, _ = scene.run()
    assert look_after(trigger) is None
    ended = subprocess.Popen(["true"])
    ended.wait()
    supervision.started(ledger, trigger.supervision, os.getpid())
    said = supervision.look(ledger, trigger.supervision)
    ledger.runs.note(said.run, {"started": said.said["started"].replace(f"pid {os.getpid()}", f"pid {ended.pid}")})
    assert look_after(trigger) == {"state": "gone", "why": "its process ended before it came up"}


def test_a_query_that_was_up_for_long_has_its_restarts_counted_anew(scene: Scene) -> None:
    _, kept = scene.run()
    kept["watch"] |= {"restarts": 5, "started": 0.0}
    _, waiting = scene.visited("gone", kept, why="its process is gone")
    assert waiting["watch"]["restarts"] == 1


def test_an_error_that_only_a_person_can_mend_is_told_at_once(scene: Scene) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    _, kept = scene.run()
    error = {"kind": "SourceChanged", "what": "Offsets are gone.", "next_step": "Replay it."}
    with pytest.raises(AirflowFailException, match=r"\ASource changed: Offsets are gone\. +Replay it"):
        scene.visited("failed", kept, error=error)
    assert len(scene.started) == 1


def test_one_that_was_asked_to_stop_is_not_started_again(scene: Scene, ledger: Any) -> None:
    trigger, kept = scene.run()
    says(ledger, trigger.supervision, ended="stop asked")
    result, _ = scene.visited("ended", kept, said={"ended": "stop asked"})
    assert (result["ended"], len(scene.started)) == ("stop asked", 1)


def test_one_that_nobody_looked_after_while_its_dag_was_paused_goes_on_afterwards(scene: Scene, ledger: Any) -> None:
    trigger, kept = scene.run()
    says(ledger, trigger.supervision, ended="told to end")
    ledger.runs.renew(ledger.runs.get(trigger.supervision), -1)
    again, _ = scene.visited("visit", kept)
    assert again.supervision != trigger.supervision
    assert len(scene.started) == 2


def test_a_visit_to_one_that_is_well_changes_nothing(scene: Scene, ledger: Any) -> None:
    trigger, kept = scene.run()
    says(ledger, trigger.supervision)
    again, _ = scene.visited("visit", kept)
    assert (again.supervision, len(scene.started)) == (trigger.supervision, 1)


def test_a_changed_definition_ends_it_and_names_the_way_on(scene: Scene, ledger: Any, streamed: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    trigger, kept = scene.run()
    says(ledger, trigger.supervision)
    change(streamed, "page_views", ("where page is not null", "where page is null"))
    with pytest.raises(AirflowFailException, match=r"\ADefinition changed: .*run page_views__replay"):
        scene.visited("visit", kept)
    assert not supervision.look(ledger, trigger.supervision).wanted


def test_a_definition_that_cannot_be_read_just_now_ends_nothing(scene: Scene, ledger: Any, streamed: Path) -> None:
    trigger, kept = scene.run()
    says(ledger, trigger.supervision)
    task = task_of("page_views__continuous", "stream")
    (streamed / "page_views.py").write_text("pipeline = = 1\n")
    from airflow.sdk.exceptions import TaskDeferred

    context = {"ti": Instance(task), "task": task, "params": {}}
    with pytest.raises(TaskDeferred):
        task.visited(context, {"state": "visit"}, kept["watch"])
    assert supervision.look(ledger, trigger.supervision).wanted


def test_while_the_pipeline_is_paused_the_trigger_waits_and_then_it_is_started_again(scene: Scene, ledger: Any) -> None:
    from twinstream_airflow.pausing import pause, resume

    trigger, kept = scene.run()
    says(ledger, trigger.supervision, ended="paused")
    pause(ledger, 1, "the source is being moved")
    assert look_after(trigger) is None
    resume(ledger, 1, "it was")
    event = look_after(trigger)
    again, _ = scene.visited(watch=kept, **event)
    assert again.supervision != trigger.supervision


def test_on_a_spark_connect_server_nothing_is_started(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from twinstream_airflow.running import where

    monkeypatch.setattr(where, "_require_answer", lambda *_: None)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark_connect", "host": "sc://localhost"}')
    with pytest.raises(AirflowFailException, match="Continuous mode needs a Spark of its own"):
        scene.run()
    assert scene.started == []


@pytest.fixture
def held(ledger: Any, scene: Scene) -> Callable[[], None]:
    """Begins a continuous run; returns what ends it."""
    opened = engine()
    definition = opened.definition("page_views")
    generation = opened.generation(definition, create=True)
    run = ledger.runs.start(Wanted(generation.id, CONTINUOUS, 0, definition.hash, {}), new_holder(), 30)
    opened.close()
    return lambda: ledger.runs.finish(run, {})


def test_micro_batches_leave_a_pipeline_alone_that_is_streamed(scene: Scene, held: Callable[[], None]) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from twinstream_airflow import settings
    from twinstream_airflow.triggers.new_data import waiting

    _, instance = execute(task_of("page_views__microbatch", "plan"))
    assert instance.skipped == ["drain"]
    assert instance.pushed["twinstream_note"].startswith("The continuous run 1 holds it")
    with pytest.raises(AirflowSkipException, match="The continuous run 1 holds it"):
        execute(task_of("page_views__microbatch", "drain"))
    assert waiting(settings.without_ledger(), "page_views") == 0


def control(action: str, to: str | None = None) -> tuple[Any, TaskInstance]:
    task = task_of("page_views__control", "decide")
    task.action, task.to, task.reason = action, to, "because"
    return execute(task)


def test_a_stop_is_asked_for_in_the_journal_and_starts_nothing(held: Callable[[], None], ledger: Any) -> None:
    _, instance = control("stop")
    assert sorted(instance.skipped) == ["drain", "stream"], "Airflow names them in no order"
    entry = ledger.journal.newest(1)[0]
    assert (entry["kind"], entry["detail"]) == ("stop asked", "because")


@pytest.mark.parametrize(("to", "left_out"), [("microbatch", "stream"), ("continuous", "drain")])
def test_a_handover_starts_who_goes_on(ledger: Any, to: str, left_out: str) -> None:
    result, instance = control("handover", to)
    assert result["done"] == f"page_views handed over to {to}"
    assert instance.skipped == [left_out]
    assert ledger.journal.newest(1)[0]["detail"] == f"because: handed over to {to}"


def test_a_handover_waits_until_nobody_runs_it_any_more(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowException

    from twinstream_airflow.operators import control as controlling

    monkeypatch.setattr(controlling, "FREE_SECONDS", 0.5)
    control("handover", "microbatch")
    ledger.leases.acquire(1, "somebody", 60)
    with pytest.raises(AirflowException, match="somebody still runs page_views"):
        control("handover", "continuous")


def test_a_query_that_falls_behind_or_silent_is_not_fresh(ledger: Any, held: Callable[[], None]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from twinstream_airflow.operators.freshness import FreshnessOperator

    def look() -> Any:
        return execute(FreshnessOperator(task_id="fresh", pipeline="page_views", max_lag=timedelta(0)))[0]

    assert look()["lag"] == 0
    [run] = ledger.runs.alive(1, CONTINUOUS)[1]
    ledger.runs.note(run, {"behind": 7.0})
    with pytest.raises(AirflowFailException, match="7 records behind and has committed nothing"):
        look()
    ledger.runs.renew(run, -60)
    with pytest.raises(AirflowFailException, match="has not shown itself"):
        look()
    held()
    assert look()["lag"] == 0
