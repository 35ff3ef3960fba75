"""Micro-batches on a booted Airflow: whatever people and machines do, the result is the truth."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.airflow.e2e.world import World, wait_for
from tests.airflow.processes import wait_until

pytestmark = pytest.mark.timeout(1500)


def test_nothing_is_wrong_with_the_plugin_and_it_is_there_once(world: World) -> None:
    assert world.rest.import_errors() == []
    plugins = world.rest.call("GET", "/plugins")["plugins"]
    assert [plugin["name"] for plugin in plugins].count("twinstream") == 1


def test_a_backlog_is_one_spark_job_and_clearing_changes_nothing(world: World) -> None:
    dag = "plain__microbatch"
    world.write("plain", 0, 20)
    first, state = world.run(dag)
    assert state == "success"
    assert world.result(dag, first, "drain")["spans"] == [[1, 20]]
    assert world.rest.run(dag, first)["note"] == "20 txids committed, frontier 20"
    world.assert_true("plain", 20)

    second, state = world.run(dag)
    assert (state, world.states(dag, second)) == ("success", {"plan": "success", "drain": "skipped"})

    world.write("plain", 20, 2)
    world.clear(dag, first, "drain")
    assert world.ended(dag, first) == "success"
    world.assert_true("plain", 22)

    world.clear(dag, second)
    assert world.ended(dag, second) == "success"
    world.assert_true("plain", 22)


def test_two_triggers_at_once_commit_everything_once(world: World) -> None:
    dag = "twice__microbatch"
    world.write("twice", 0, 3)
    runs = [world.start(dag), world.start(dag)]
    assert [world.ended(dag, run) for run in runs] == ["success", "success"]
    world.assert_true("twice", 3)


def test_a_backfill_of_many_runs_commits_everything_once(world: World) -> None:
    dag = "backfilled__microbatch"
    world.write("backfilled", 0, 3)
    world.rest.unpause(dag)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    body = {
        "dag_id": dag, "from_date": (today - timedelta(days=6)).isoformat(),
        # Not today: where the scheduler makes the same day's run at the same moment, Airflow 3.3.2 ends its scheduler.
        "to_date": (today - timedelta(days=1)).isoformat(), "max_active_runs": 3, "run_on_latest_version": True,
    }  # fmt: skip
    world.rest.call("POST", "/backfills", body)
    wait_for(lambda: len(world.rest.runs(dag)) >= 3, 60, "the runs of the backfill")
    assert {world.ended(dag, run["dag_run_id"]) for run in world.rest.runs(dag)} == {"success"}
    world.assert_true("backfilled", 3)


def test_new_files_start_a_micro_batch_by_themselves(world: World) -> None:
    dag = "watched__microbatch"
    world.rest.unpause(dag)
    world.look_at_files(dag)
    world.write("watched", 0, 2)
    runs = wait_for(lambda: world.rest.runs(dag), 150, "a run that new data started")
    assert runs[0]["run_type"] == "asset_triggered"
    assert world.ended(dag, runs[0]["dag_run_id"]) == "success"
    world.assert_true("watched", 2)


def test_a_drain_by_spark_submit_ends_as_one_by_connect(world: World) -> None:
    dag = "submitted__microbatch"
    world.write("submitted", 0, 3)
    run, state = world.run(dag)
    assert state == "success", world.log(dag, run, "drain")
    world.assert_true("submitted", 3)


def test_a_replay_builds_a_generation_proves_it_and_promotes_it(world: World) -> None:
    dag = "replayed__replay"
    world.write("replayed", 0, 2)
    assert world.run("replayed__microbatch")[1] == "success"
    run, state = world.run(dag, {"promote": False, "reason": "a new definition"})
    assert (state, world.states(dag, run)["promote"]) == ("success", "skipped")
    assert world.result(dag, run, "replay")["generation"] == 2
    assert world.generation("replayed") == 1
    run, state = world.run(dag, {"promote": True, "reason": "it is good"})
    assert state == "success", world.log(dag, run, "promote")
    assert world.generation("replayed") == 2
    world.assert_true("replayed", 2)


def test_a_connection_that_is_missing_is_one_clear_line_and_no_retry(world: World) -> None:
    dag = "unconnected__microbatch"
    world.write("unconnected", 0, 1)
    run, state = world.run(dag)
    assert state == "failed"
    assert world.task(dag, run, "drain")["try_number"] == 1
    assert "There is no Airflow connection 'nowhere' for Spark. Nothing was submitted." in world.log(dag, run, "drain")
    assert world.frontier("unconnected") == 0
    assert wait_until(lambda: world.notices() == [dag], 60)


def test_a_spark_that_does_not_answer_is_tried_again_and_loses_nothing(world: World) -> None:
    dag = "unreachable__microbatch"
    world.write("unreachable", 0, 1)
    run, state = world.run(dag)
    assert state == "failed"
    assert world.task(dag, run, "drain")["try_number"] == 2
    assert "Spark does not answer at 127.0.0.1:9" in world.log(dag, run, "drain", 2)
    assert world.frontier("unreachable") == 0


def test_a_task_that_takes_too_long_leaves_nothing_running_and_goes_on_when_cleared(world: World) -> None:
    dag = "timed_out__microbatch"
    world.write("timed_out", 0, 2)
    world.slow("timed_out", True)
    run = world.start(dag)
    wait_for(world.spark_jobs, 150, "the drain to be at work on Spark")
    assert world.ended(dag, run) == "failed"
    assert wait_until(lambda: world.spark_jobs() == [])
    assert wait_until(lambda: world.at_work("timed_out") == [])
    world.slow("timed_out", False)
    world.clear(dag, run)
    assert world.ended(dag, run) == "success"
    world.assert_true("timed_out", 2)


def test_a_spark_submit_that_takes_too_long_leaves_neither_jvm_nor_driver(world: World) -> None:
    dag = "cold_time__microbatch"
    world.write("cold_time", 0, 2)
    world.slow("cold_time", True)
    run = world.start(dag)
    wait_for(lambda: len(world.at_work("cold_time")) >= 3, 150, "guard, JVM and driver")
    assert world.ended(dag, run) == "failed"
    assert wait_until(lambda: world.at_work("cold_time") == [])
    world.slow("cold_time", False)
    world.clear(dag, run)
    assert world.ended(dag, run) == "success"
    world.assert_true("cold_time", 2)


def test_a_task_process_that_is_killed_in_the_middle_of_a_drain_is_tried_again(world: World) -> None:
    dag = "killed_task__microbatch"
    world.write("killed_task", 0, 2)
    world.slow("killed_task", True)
    run = world.start(dag)
    wait_for(world.spark_jobs, 150, "the drain to be at work on Spark")
    guard = min(world.at_work("killed_task"))
    os.kill(_parent(guard), signal.SIGKILL)
    world.slow("killed_task", False)
    assert wait_until(lambda: world.spark_jobs() == [])
    assert world.ended(dag, run) == "success"
    assert world.task(dag, run, "drain")["try_number"] == 2
    world.assert_true("killed_task", 2)


def test_a_scheduler_that_is_killed_with_all_its_tasks_and_started_again_goes_on(world: World) -> None:
    dag = "killed_scheduler__microbatch"
    world.write("killed_scheduler", 0, 2)
    world.slow("killed_scheduler", True)
    run = world.start(dag)
    wait_for(world.spark_jobs, 150, "the drain to be at work on Spark")
    world.restart_scheduler()
    world.slow("killed_scheduler", False)
    assert world.ended(dag, run) == "success"
    assert wait_until(lambda: world.spark_jobs() == [])
    world.assert_true("killed_scheduler", 2)


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])
