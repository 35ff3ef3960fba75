"""Operators that need no Spark, on a real ledger; those that do are run by the booted Airflow in e2e/."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.definitions import change
from tests.e2e.events import events, write_json


@dataclass
class TaskInstance:
    """As much of a task instance as operators use: the real one cannot be made without a supervisor process."""

    task: Any
    pushed: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    dag_id: str = "page_views__microbatch"
    run_id: str = "manual"
    task_id: str = "task"
    map_index: int = -1
    try_number: int = 1

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


def execute(task: Any, **context: Any) -> tuple[Any, TaskInstance]:
    """Runs an operator's own code; returns its result and what it did to the run."""
    from airflow.sdk.exceptions import DownstreamTasksSkipped

    instance = TaskInstance(task)
    given = {"ti": instance, "task": task, "triggering_asset_events": {}, "params": {}, **context}
    try:
        result = type(task).execute.__wrapped__(task, given)
    except DownstreamTasksSkipped as skip:
        instance.skipped = [str(one) for one in skip.tasks]
        result = instance.pushed["return_value"]
    return result, instance


def task_of(dag: str, task: str) -> Any:
    from twinstream_airflow.dags.build import all_dags

    found: Any = all_dags()[dag].get_task(task)
    for name in found.template_fields:
        if isinstance(getattr(found, name), str) and "params." in getattr(found, name):
            setattr(found, name, None)
    return found


@pytest.fixture
def source(pipelines: Path, tmp_path: Path) -> Path:
    """The folder of page_views with two files in it."""
    folder = tmp_path / "home" / "data" / "page_views"
    for number in range(2):
        write_json(folder / f"{number}.json", events(number))
    return folder


def engine() -> Any:
    from twinstream.engine import Engine
    from twinstream_airflow import settings

    return Engine(settings.without_ledger())


def test_planning_logs_what_is_new_once(source: Path) -> None:
    plan = task_of("page_views__microbatch", "plan")
    plan.batch_records = "12"
    first, instance = execute(plan)
    assert (first["planned"], first["txids"], first["records"]) == (2, 2, 24)
    assert instance.skipped == []
    again, _ = execute(plan)
    assert (again["planned"], again["txids"]) == (0, 2)


def test_with_nothing_to_do_the_rest_is_skipped(pipelines: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "data" / "page_views").mkdir(parents=True)
    _, instance = execute(task_of("page_views__microbatch", "plan"))
    assert instance.skipped == ["drain"]


def test_a_source_that_is_not_there_is_told_and_may_be_tried_again(pipelines: Path) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    with pytest.raises(AirflowException, match=r"\ASource unreadable: The source folder .* does not exist") as caught:
        execute(task_of("page_views__microbatch", "plan"))
    assert not isinstance(caught.value, AirflowFailException)


def test_a_ledger_that_is_down_is_told_and_may_be_tried_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    monkeypatch.setenv("AIRFLOW_CONN_TWINSTREAM_LEDGER", "postgres://me:canary@127.0.0.1:9/ledger")
    with pytest.raises(AirflowException, match=r"\ALedger error: ") as caught:
        execute(task_of("page_views__microbatch", "plan"))
    assert not isinstance(caught.value, AirflowFailException)
    assert "canary" not in str(caught.value)
    monkeypatch.delenv("AIRFLOW_CONN_TWINSTREAM_LEDGER")
    assert execute(task_of("page_views__microbatch", "plan"))[0]["records"] == 24


def test_a_definition_that_changed_meanwhile_is_refused_by_the_first_task(source: Path, pipelines: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    plan = task_of("page_views__microbatch", "plan")
    execute(plan)
    change(pipelines, "page_views", ("where page is not null", "where page is null"))
    with pytest.raises(AirflowFailException, match=r"\ADefinition changed: .*replay page_views"):
        execute(plan)


@pytest.mark.parametrize("asked", ["3", "99"])
def test_a_frontier_beyond_what_is_committed_is_refused(source: Path, asked: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    execute(task_of("page_views__microbatch", "plan"))
    frontier = task_of("page_views__recompute", "frontier")
    frontier.frontier = asked
    with pytest.raises(AirflowFailException, match=asked):
        execute(frontier)


def test_a_pipeline_that_committed_nothing_has_nothing_to_recompute(source: Path) -> None:
    _, instance = execute(task_of("page_views__reconcile", "frontier"))
    assert {"compare.recompute", "compare.reconcile", "verdict"} <= set(instance.skipped)


def control(action: str, **options: Any) -> tuple[Any, TaskInstance]:
    task = task_of("page_views__control", "decide")
    for name, value in {"action": action, "reason": "because", **options}.items():
        setattr(task, name, value)
    return execute(task)


def test_a_paused_pipeline_plans_nothing_until_it_is_resumed(source: Path) -> None:
    _, instance = control("pause", reason="the source is being moved")
    assert instance.skipped == ["drain"]
    _, instance = execute(task_of("page_views__microbatch", "plan"))
    assert instance.skipped == ["drain"]
    assert instance.pushed["twinstream_note"] == "Paused: the source is being moved"
    assert engine().ledger.batches.backlog(1)[0] == 0
    _, instance = control("resume")
    assert instance.skipped == []
    assert execute(task_of("page_views__microbatch", "plan"))[0]["txids"] == 1


@pytest.mark.parametrize(
    ("action", "options", "says"),
    [
        ("release", {}, "needs a txid"),
        ("release", {"txid": "1"}, "Refused"),
        ("reinject", {"file": "None"}, "needs a file"),
        ("discard", {"txid": "1", "reason": "  "}, "reason is empty"),
        ("explode", {}, "There is no action 'explode'"),
    ],
)
def test_what_cannot_be_decided_is_refused_in_one_line(
    source: Path, action: str, options: dict[str, str], says: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    execute(task_of("page_views__microbatch", "plan"))
    with pytest.raises(AirflowFailException, match=says):
        control(action, **options)


def test_mended_records_come_back_as_a_txid(source: Path, tmp_path: Path) -> None:
    execute(task_of("page_views__microbatch", "plan"))
    mended = tmp_path / "mended.json"
    write_json(mended, events(7))
    result, instance = control("reinject", file=str(mended))
    assert result["done"] == "12 records reinjected as txid 2"
    assert instance.skipped == []


def freshness(**policy: timedelta) -> tuple[Any, TaskInstance]:
    from twinstream_airflow.operators.freshness import FreshnessOperator

    return execute(FreshnessOperator(task_id="fresh", pipeline="page_views", **policy))


def test_a_verdict_that_never_came_and_data_that_waits_are_noticed(source: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="page_views is not fresh: it was never reconciled"):
        freshness(max_verdict_age=timedelta(hours=1))
    execute(task_of("page_views__microbatch", "plan"))
    with pytest.raises(AirflowFailException, match="data has been waiting for"):
        freshness(max_lag=timedelta(0))
    assert freshness(max_lag=timedelta(hours=1))[0]["verdict_age"] is None
    assert freshness()[0]["lag"] >= 0


def test_backups_of_the_ledger_are_kept_up_to_a_number(source: Path, tmp_path: Path) -> None:
    from twinstream_airflow.operators.upkeep import BackupOperator

    execute(task_of("page_views__microbatch", "plan"))
    made = [execute(BackupOperator(task_id="backup", keep="2"))[0]["file"] for _ in range(3)]
    assert sorted(map(str, (tmp_path / "home" / "backups").iterdir())) == made[1:]


def test_upkeep_of_a_pipeline_that_was_never_run_is_skipped(source: Path) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    for task in ("fold", "clean", "scrub"):
        found = task_of("twinstream__maintenance", f"page_views.{task}")
        with pytest.raises(AirflowSkipException, match=r"committed nothing|not been run"):
            execute(found)
        with pytest.raises(AirflowSkipException, match="not asked for"):
            execute(found, params={"pipelines": ["orders"]})


def test_a_generation_that_is_not_proven_is_not_promoted_and_promoting_nothing_changes_nothing(source: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from twinstream.transaction import canonical_json

    execute(task_of("page_views__microbatch", "plan"))
    promote = task_of("page_views__replay", "promote")
    assert execute(promote)[0] == {"generation": 1, "frontier": 0}
    opened = engine()
    definition = opened.definition("page_views")
    opened.ledger.generations.build("page_views", definition.hash, canonical_json(definition.canonical))
    with pytest.raises(AirflowFailException, match=r"\ARefused: Generation 2 of page_views is not proven"):
        execute(promote)
    assert opened.ledger.generations.current("page_views").number == 1
    opened.close()
