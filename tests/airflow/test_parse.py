"""Parsing: every DAG is there, quick to build, and no definition can take another one's DAGs down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.definitions import ROOT, change, copies

FAMILIES = ("microbatch", "recompute", "reconcile", "repair", "replay", "control")
SHARED = {"twinstream__maintenance", "twinstream__freshness"}
OWN_SECONDS = 2.0
MEASURE = """
import json, sys, time
import airflow.triggers.base
from airflow.providers.standard.operators import hitl, python, trigger_dagrun
from airflow.sdk import DAG, Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, Param, TaskGroup
from airflow.listeners import hookimpl

def no_ledger(event, arguments):
    if event == "sqlite3.connect" or (event == "socket.connect"):
        raise AssertionError(f"{event} while parsing: {arguments}")

sys.addaudithook(no_ledger)
began = time.process_time()
from twinstream_airflow.dags.build import all_dags
dags = all_dags()
heavy = [name for name in ("pyspark", "great_expectations", "pandas", "deltalake") if name in sys.modules]
print(json.dumps({"seconds": time.process_time() - began, "dags": sorted(dags), "heavy": heavy}))
"""


def built():
    from twinstream_airflow.dags.build import all_dags

    return all_dags()


def test_every_pipeline_has_its_dags(pipelines: Path) -> None:
    expected = {f"{name}__{family}" for name in ("page_views", "orders") for family in FAMILIES}
    assert set(built()) == expected | SHARED


def test_the_files_in_dags_give_the_same_dags_without_an_import_error(pipelines: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(ROOT / "dags")
    assert bag.import_errors == {}
    assert set(bag.dags) == set(built())


def test_every_dag_can_be_stored_by_airflow(pipelines: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in built().values():
        stored = DagSerialization.to_dict(dag)
        assert json.dumps(stored, sort_keys=True)


def test_parsing_twice_gives_the_same_dag_versions(pipelines: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    def stored() -> dict[str, str]:
        return {name: json.dumps(DagSerialization.to_dict(dag), sort_keys=True) for name, dag in built().items()}

    assert stored() == stored()


def test_twenty_pipelines_parse_within_the_budget_without_spark_and_without_a_ledger(pipelines: Path) -> None:
    copies(pipelines, 18)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env={**os.environ, "PYTHONPATH": str(ROOT / "plugins")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["dags"]) == 20 * len(FAMILIES) + len(SHARED)
    assert found["heavy"] == []
    assert found["seconds"] < OWN_SECONDS, found["seconds"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("pipeline = = 1\n", "broken.py, line 1: SyntaxError"),
        ("import a_module_that_is_nowhere\n", "a_module_that_is_nowhere"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("pipeline = 7\n", "not a Pipeline"),
    ],
)
def test_a_broken_definition_has_a_dag_that_says_so_and_harms_no_other(pipelines: Path, damage: str, says: str) -> None:
    (pipelines / "broken.py").write_text(damage)
    dags = built()
    assert "broken__broken" in dags
    assert {f"page_views__{family}" for family in FAMILIES} < set(dags)
    broken = dags["broken__broken"]
    assert says in broken.doc_md
    assert "broken.py" in broken.doc_md
    assert "broken" in broken.tags


def test_the_task_of_a_broken_definition_fails_with_the_cause(pipelines: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from twinstream_airflow.dags.broken import broken_dag

    task: Any = broken_dag("sales", "sales.py", "Definition error: sales.py: no schema").get_task("broken")
    with pytest.raises(AirflowFailException, match=r"sales\.py: no schema"):
        type(task).execute.__wrapped__(task, {})


def test_a_schedule_that_airflow_could_not_take_breaks_its_own_file_only(pipelines: Path) -> None:
    change(pipelines, "orders", ('microbatch="*/10 * * * *"', 'microbatch="61 * * * *"'))
    dags = built()
    assert "is not a schedule" in dags["orders__broken"].doc_md
    assert not any(name.startswith("orders__micro") for name in dags)
    assert "page_views__microbatch" in dags


def test_a_notifier_that_is_not_there_breaks_only_what_needs_it(pipelines: Path) -> None:
    change(pipelines, "orders", ('owner="shop"', 'owner="shop", notify={"nowhere.Nobody": {}}'))
    dags = built()
    assert "nowhere.Nobody" in dags["orders__microbatch__broken"].doc_md
    assert {"page_views__microbatch", *SHARED} <= set(dags)


def test_a_folder_that_is_not_there_is_told(pipelines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSTREAM_PIPELINES", str(pipelines / "nowhere"))
    dags = built()
    assert "does not exist" in dags["pipelines__broken"].doc_md


def test_owner_tags_pool_connection_and_time_come_from_the_definition(pipelines: Path) -> None:
    from datetime import timedelta

    more = 'owner="shop", tags=("money",), pool="spark", spark="cluster", timeout="7 minutes", retries=5'
    change(pipelines, "orders", ('owner="shop"', more))
    dag = built()["orders__microbatch"]
    drain = dag.get_task("drain")
    assert {"money", "orders", "twinstream", "microbatch"} <= set(dag.tags)
    assert (drain.owner, drain.pool, drain.spark, drain.retries) == ("shop", "spark", "cluster", 5)
    assert drain.execution_timeout == timedelta(minutes=7)
    assert dag.get_task("plan").pool == "default_pool"


def test_without_a_watcher_a_pipeline_runs_by_its_schedule_only(pipelines: Path) -> None:
    from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable

    assert isinstance(built()["orders__microbatch"].timetable, AssetOrTimeSchedule)
    change(pipelines, "orders", ('owner="shop"', 'owner="shop", watch=False'))
    assert isinstance(built()["orders__microbatch"].timetable, CronTriggerTimetable)


def test_a_repair_asks_a_person_unless_the_policy_says_otherwise(pipelines: Path) -> None:
    dags = built()
    assert dags["page_views__repair"].has_task("approve")
    assert not dags["orders__repair"].has_task("approve")


def test_only_the_recomputation_tells_of_a_batch_result(pipelines: Path) -> None:
    emitting = {
        task.dag_id
        for dag in built().values()
        for task in dag.tasks
        for outlet in task.outlets
        if outlet.uri.endswith("/batch")
    }
    assert emitting == {"page_views__recompute", "orders__recompute"}


def test_every_form_field_says_what_it_is_for(pipelines: Path) -> None:
    for dag in built().values():
        assert dag.doc_md
        for name in dag.params:
            param = dag.params.get_param(name)
            assert param.schema.get("title"), (dag.dag_id, name)
            assert param.description, (dag.dag_id, name)


def test_the_process_of_a_task_builds_the_dags_of_its_own_pipeline_only(
    pipelines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "orders__reconcile")
    assert {name for name in built() if name not in SHARED} == {f"orders__{family}" for family in FAMILIES}
