"""Reconciliation and repair on a booted Airflow: found, asked, answered, mended, proven."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from deltalake import DeltaTable

from bin.lib.local.rest import DONE
from tests.airflow.e2e.world import SECONDS, World, wait_for
from twinstream.errors import EnvironmentMissing

pytestmark = pytest.mark.timeout(1500)
SETTLES = 2.0
"""By then the scheduler has heard from the executor that the process is gone."""


def damage(world: World, name: str) -> None:
    """Somebody changes rows behind our back."""
    table = next((world.home / "tables" / name / "_twinstream").glob("g*-*"))
    for kind in ("base", "partial"):
        done = DeltaTable(str(table)).update(updates={"views": "views + 7"}, predicate=f"_kind = '{kind}'")
        if done["num_updated_rows"]:
            return
    raise AssertionError("nothing to damage")


def found_different(world: World, name: str) -> str:
    """Streams, damages and reconciles; returns the repair run that this called for."""
    world.write(name, 0, 2)
    assert world.run(f"{name}__microbatch")[1] == "success"
    damage(world, name)
    world.rest.unpause(f"{name}__repair")
    run, state = world.run(f"{name}__reconcile")
    assert state == "failed", world.states(f"{name}__reconcile", run)
    assert world.rest.run(f"{name}__reconcile", run)["note"].startswith("Different as of txid 2: ")
    assert "Different as of txid 2" in world.log(f"{name}__reconcile", run, "verdict")
    repairs = world.rest.runs(f"{name}__repair")
    assert len(repairs) == 1
    return str(repairs[0]["dag_run_id"])


def has_drained(world: World, name: str) -> int:
    """The frontier of a pipeline that has one, whichever tests came before on this worker."""
    if not world.frontier(name):
        world.write(name, 0, 2)
        assert world.run(f"{name}__microbatch")[1] == "success"
    return world.frontier(name)


def answer(world: World, dag: str, run: str, option: str) -> Any:
    path = f"/dags/{dag}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails"
    return world.rest.call("PATCH", path, {"chosen_options": [option], "params_input": {}})


def decide(world: World, dag: str, run: str, option: str) -> str:
    """Answers until the run has ended: Airflow asks again where it took an answer for a task that was lost."""

    def look() -> str | None:
        if world.asks(dag, run, "approve"):
            time.sleep(SETTLES)
            with suppress(EnvironmentMissing):
                answer(world, dag, run, option)
        state = str(world.rest.run(dag, run)["state"])
        return state if state in DONE else None

    world.task_reaches(dag, run, "approve", "awaiting_input")
    return str(wait_for(look, SECONDS, f"{dag} after the answer"))


def test_a_difference_is_found_refused_then_approved_and_mended(world: World) -> None:
    dag = "mended__repair"
    refused = found_different(world, "mended")
    assert decide(world, dag, refused, "Reject") == "success", world.states(dag, refused)
    assert world.states(dag, refused)["repair"] == "skipped"

    approved = world.start(dag, {"dry_run": False})
    world.task_reaches(dag, approved, "approve", "awaiting_input")
    assert world.run("mended__reconcile")[1] == "failed", (
        "waiting for a person must not hold up the next reconciliation"
    )
    assert decide(world, dag, approved, "Approve") == "success", world.states(dag, approved)
    with pytest.raises(EnvironmentMissing, match="refused"):
        answer(world, dag, approved, "Approve")
    world.assert_true("mended", 2)
    assert world.result(dag, approved, "repair")["verdict"] == "equal"

    run, state = world.run("mended__reconcile")
    assert state == "success"
    assert world.states("mended__reconcile", run)["repair"] == "skipped"
    assert world.rest.run("mended__reconcile", run)["note"] == "Equal as of txid 2"


def test_nobody_answering_means_no(world: World) -> None:
    dag = "unanswered__repair"
    run = found_different(world, "unanswered")
    assert world.ended(dag, run) == "success"
    states = world.states(dag, run)
    assert (states["approve"], states["repair"]) == ("success", "skipped")


def test_a_policy_of_repairing_by_itself_asks_nobody(world: World) -> None:
    dag = "automatic__repair"
    run = found_different(world, "automatic")
    assert world.ended(dag, run) == "success", world.states(dag, run)
    world.assert_true("automatic", 2)


def test_a_recomputation_starts_the_reconciliation_at_its_frontier(world: World) -> None:
    world.write("controlled", 0, 2)
    assert world.run("controlled__microbatch")[1] == "success"
    world.rest.unpause("controlled__reconcile")
    assert world.run("controlled__recompute")[1] == "success"
    world.write("controlled", 2, 1)
    assert world.run("controlled__microbatch")[1] == "success"
    found = wait_for(lambda: world.rest.runs("controlled__reconcile"), 60, "the reconciliation")[0]["dag_run_id"]
    assert world.ended("controlled__reconcile", found) == "success"
    states = world.states("controlled__reconcile", found)
    assert states["compare.recompute"] == "skipped"
    assert world.result("controlled__reconcile", found, "compare.reconcile")["frontier"] == 2


def test_a_frontier_that_was_never_reached_is_refused_by_the_first_task(world: World) -> None:
    has_drained(world, "controlled")
    run, state = world.run("controlled__recompute", {"frontier": 99})
    assert state == "failed"
    assert world.task("controlled__recompute", run, "frontier")["try_number"] == 1
    assert "99" in world.log("controlled__recompute", run, "frontier")
    with pytest.raises(EnvironmentMissing, match="frontier"):
        world.rest.trigger("controlled__recompute", {"frontier": 0})


def test_a_paused_pipeline_drains_nothing_until_it_is_resumed(world: World) -> None:
    before = has_drained(world, "controlled")
    run, state = world.run("controlled__control", {"action": "pause", "reason": "the source is being moved"})
    assert state == "success"
    world.write("controlled", before, 1)
    run, state = world.run("controlled__microbatch")
    assert (state, world.states("controlled__microbatch", run)["drain"]) == ("success", "skipped")
    assert world.rest.run("controlled__microbatch", run)["note"] == "Paused: the source is being moved"
    assert world.frontier("controlled") == before
    assert world.run("controlled__control", {"action": "resume", "reason": "it is there"})[1] == "success"
    wait_for(lambda: world.frontier("controlled") == before + 1, 60, "the drain that goes on")


def test_maintenance_and_freshness_run(world: World) -> None:
    dag = "twinstream__maintenance"
    has_drained(world, "controlled")
    world.rest.unpause(dag)
    nightly = wait_for(lambda: world.rest.runs(dag), 60, "the nightly run")[0]["dag_run_id"]
    world.rest.call("PATCH", f"/dags/{dag}/dagRuns/{nightly}", {"state": "failed"})
    run, state = world.run(dag, {"pipelines": ["controlled"]})
    states = world.states(dag, run)
    assert state == "success", states
    assert [states[f"controlled.{task}"] for task in ("fold", "clean", "scrub")] == ["success"] * 3
    others = [one for one in world.rest.tasks(dag, run) if not one["task_id"].startswith(("backup", "controlled."))]
    assert {one["state"] for one in others} == {"skipped"}
    assert len({one["start_date"] for one in others}) == 1, "left out at once, and not by a task each"
    assert list((world.home / "backups").glob("ledger-*.jsonl"))
    assert world.run("twinstream__freshness")[1] == "success"


def test_a_scrub_that_finds_damage_fails_by_name(world: World) -> None:
    dag = "twinstream__maintenance"
    for name in ("automatic", "unanswered"):
        if not world.frontier(name):
            assert world.ended(f"{name}__repair", found_different(world, name)) == "success"
    run, state = world.run(dag, {"pipelines": ["automatic", "unanswered"]})
    states = world.states(dag, run)
    assert (state, states["unanswered.scrub"]) == ("failed", "failed")
    assert "unanswered: the stored rows of 2 txids are not as they were committed (1, 2)." in world.log(
        dag, run, "unanswered.scrub"
    )
    assert states["automatic.scrub"] == "success", "what a repair has mended is no damage any more"
