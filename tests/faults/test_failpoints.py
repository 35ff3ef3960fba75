"""Killed by SIGKILL in a real process before and after every durable step, and started again: the result is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import failpoints
from tests.faults.stage import DRAIN, FOLD, SIGKILL, Prepared, Stage

CLEAN = ["clean", "page_views", "--retain", "0", "--grace", "0"]
REPLAY = ["replay", "page_views"]
RECOMPUTE = ["recompute", "page_views"]
RECONCILE = ["reconcile", "page_views"]
DROP = ["drop", "page_views", "--generation", "1"]
REINJECT = ["reinject", "page_views", "{home}/mended.json"]

# Which home a step is met in, and by which command, in the order in which it meets them.
SCENES: dict[str, tuple[str, list[str]]] = {
    "ledger.upgrade": ("start", DRAIN),
    "ledger.host": ("start", DRAIN),
    "ledger.generation": ("start", DRAIN),
    "ledger.plan": ("start", DRAIN),
    "ledger.lease": ("start", DRAIN),
    "sink.create": ("start", DRAIN),
    "sink.fence": ("start", DRAIN),
    "ledger.attempt": ("start", DRAIN),
    "stage.group": ("start", DRAIN),
    "ledger.processed": ("start", DRAIN),
    "stage.late": ("start", DRAIN),
    "sink.notes": ("start", DRAIN),
    "sink.commit": ("start", DRAIN),
    "ledger.committed": ("start", DRAIN),
    "ledger.unlease": ("start", DRAIN),
    "stage.records": ("repeated", DRAIN),
    "stage.suspects": ("repeated", DRAIN),
    "stage.repeated": ("repeated", DRAIN),
    "stage.ids": ("repeated", DRAIN),
    "stage.tidy": ("repeated", DRAIN),
    "ids.segment": ("repeated", DRAIN),
    "ids.forget": ("strayed", DRAIN),
    "sink.remove-staging": ("interrupted", DRAIN),
    "ledger.cleaned": ("interrupted", DRAIN),
    "stage.base": ("drained", FOLD),
    "sink.base": ("drained", FOLD),
    "sink.checkpoint": ("drained", FOLD),
    "publish.create": ("drained", FOLD),
    "publish.stage": ("drained", FOLD),
    "publish.commit": ("drained", FOLD),
    "ledger.promote": ("drained", REPLAY),
    "ledger.drop": ("replayed", DROP),
    "drop.delete": ("replayed", DROP),
    "reinject.copy": ("mended", REINJECT),
    "ledger.run": ("drained", RECOMPUTE),
    "batch.rows": ("drained", RECOMPUTE),
    "ledger.run-note": ("drained", RECOMPUTE),
    "batch.write": ("drained", RECOMPUTE),
    "batch.table": ("drained", RECOMPUTE),
    "batch.prints": ("drained", RECOMPUTE),
    "batch.tidy": ("drained", RECOMPUTE),
    "ledger.run-done": ("drained", RECOMPUTE),
    "certificate.write": ("drained", RECONCILE),
    "quality.folder": ("drained", RECONCILE),
    "ledger.remove-later": ("folded", CLEAN),
    "sink.replace": ("folded", CLEAN),
    "clean.delete": ("folded", CLEAN),
    "ledger.deleted": ("folded", CLEAN),
    "clean.batch": ("recomputed", CLEAN),
}
ELSEWHERE = {
    "continuous.forget": "tests/kafka/test_continuous.py::test_killed_there_the_next_one_goes_on",
    "realtime.begin": "tests/kafka/test_realtime.py::test_ended_there_nothing_is_lost",
    "realtime.forget": "tests/kafka/test_realtime.py::test_ended_there_nothing_is_lost",
    "sink.produced": "tests/kafka/test_sink.py::test_killed_there_rows_come_again_only_with_the_same_headers",
    "ledger.renew": "tests/faults/test_processes.py::test_killed_in_the_heartbeat_the_next_one_goes_on",
    "ledger.rate": "tests/faults/model/test_steps.py::test_killed_there_the_next_one_goes_on",
    "ledger.hold": "tests/faults/model/test_steps.py::test_killed_there_the_next_one_goes_on",
    "ledger.give-up": "tests/faults/model/test_steps.py::test_killed_there_the_next_one_goes_on",
    "ledger.release": "tests/faults/model/test_steps.py::test_killed_there_the_next_one_goes_on",
    "ledger.discard": "tests/faults/model/test_steps.py::test_killed_there_the_next_one_goes_on",
    "ledger.backup": "tests/faults/test_ledger_steps.py::test_a_backup_is_whole_or_not_there",
    "ledger.restore": "tests/faults/test_ledger_steps.py::test_a_ledger_is_restored_as_a_whole_or_not_at_all",
    "ledger.rebuild": "tests/faults/test_ledger_steps.py::test_a_rebuild_is_done_as_a_whole_or_not_at_all",
    "ledger.run-failed": "tests/faults/test_ledger_steps.py::test_a_run_that_is_killed_is_taken_over",
    "ledger.run-renew": "tests/faults/test_ledger_steps.py::test_a_run_that_is_killed_is_taken_over",
    "ledger.journal": "tests/faults/test_ledger_steps.py::test_what_a_person_asked_for_is_noted_or_it_is_not",
    "ledger.pin": "tests/faults/test_ledger_steps.py::test_a_pin_whose_reader_is_killed_runs_out",
    "ledger.unpin": "tests/faults/test_ledger_steps.py::test_a_pin_whose_reader_is_killed_runs_out",
}
"""Steps that no command of a scene meets, with the test that kills there."""
CHAIN = 5
"""So many steps are met one after the other in one home."""
ROOT = Path(__file__).resolve().parents[2]


def test_every_durable_call_has_a_failpoint() -> None:
    assert failpoints.unguarded() == []


def test_every_failpoint_has_a_scene() -> None:
    assert set(failpoints.steps()) == set(SCENES) | set(ELSEWHERE)


@pytest.mark.parametrize("step", ELSEWHERE)
def test_a_step_that_is_killed_elsewhere_is_named_there(step: str) -> None:
    file, _, test = ELSEWHERE[step].partition("::")
    text = (ROOT / file).read_text()
    assert f"def {test}(" in text
    assert f'"{step}"' in text or f'"{step}:' in text


def _chains() -> list[list[str]]:
    """Steps that one command meets in one home, a few at a time."""
    alike: dict[str, list[str]] = {}
    for step, (home, command) in SCENES.items():
        alike.setdefault(f"{home} {command}", []).append(step)
    return [steps[start : start + CHAIN] for steps in alike.values() for start in range(0, len(steps), CHAIN)]


@pytest.mark.parametrize("steps", _chains(), ids="-".join)
def test_killed_before_and_after_each_and_started_again_the_result_is_the_truth(
    steps: list[str], prepared: Prepared, tmp_path: Path
) -> None:
    """One kill after the other, each started again into the next; in another home where there is nothing left to do."""
    name, command = SCENES[steps[0]]
    stage = prepared.stage(name, tmp_path / "home")
    for failpoint in [f"{step}:{side}" for step in steps for side in ("before", "after")]:
        ran = stage.run(command, failpoint)
        if ran.code == 0:
            _finish(stage, command)
            stage = prepared.stage(name, tmp_path / failpoint)
            stage.killed(command, failpoint)
        else:
            assert ran.code == SIGKILL, f"{failpoint}: {ran.err}"
    _finish(stage, command)


def _finish(stage: Stage, command: list[str]) -> None:
    stage.good(command)
    if command is not DRAIN:
        stage.good(DRAIN)
    stage.assert_true(txids=1 if command in (REPLAY, DROP) else 5)
