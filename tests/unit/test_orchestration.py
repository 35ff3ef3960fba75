"""The orchestration of a definition: what Airflow could not use is refused where it is written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from twinstream import Orchestration
from twinstream.errors import DefinitionError


@pytest.mark.parametrize(
    "text",
    ["*/5 * * * *", "0 3 * * *", "15,45 0-6/2 1 JAN-MAR mon", "0 0 L * *", "@daily", "0 12 * * 7", None],
)
def test_schedules_that_airflow_takes_are_taken(text: str | None) -> None:
    assert Orchestration(microbatch=text).microbatch == text


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *", "@often",
     "a b c d e", "1-* * * * *", 5],
)  # fmt: skip
def test_others_are_refused_by_name(text: object) -> None:
    with pytest.raises(DefinitionError, match=r"reconcile=.* is not a schedule"):
        Orchestration(reconcile=text)  # type: ignore[arg-type]


def test_durations_are_checked_when_the_definition_is_read() -> None:
    assert Orchestration(timeout="90 minutes").duration("timeout") == timedelta(minutes=90)
    for name in ("timeout", "approval_timeout", "max_lag", "max_verdict_age", "every", "restart_delay", "visit"):
        with pytest.raises(DefinitionError, match=name):
            Orchestration(**{name: "soon"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{"retries": -1}, {"restarts": True}, {"mode": "fast"}, {"tags": "web"}, {"pool": ""}, {"owner": " "}]
)
def test_what_is_no_name_number_or_list_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(change))):
        Orchestration(**change)  # type: ignore[arg-type]
