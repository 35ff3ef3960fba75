"""The protocol under every interleaving that Hypothesis can think of, on the real ledger and the sink in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.model.protocol import Protocol

STEPS_WANTED = 100_000


@pytest.mark.timeout(1800)
def test_every_record_exactly_once_whatever_happens(template: Path) -> None:
    """At least 100,000 durable steps in one run of the tests."""
    Protocol.template = template
    Protocol.total = 0
    runs = 0
    while Protocol.total < STEPS_WANTED:
        runs += 1
        assert runs < 60, f"only {Protocol.total} steps in {runs} runs"
        run_state_machine_as_test(
            Protocol,
            settings=settings(
                max_examples=100, stateful_step_count=35, deadline=None, database=None, phases=(Phase.generate,)
            ),
        )
    print(f"{Protocol.total} steps")
