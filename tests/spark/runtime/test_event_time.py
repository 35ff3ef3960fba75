"""Event time end to end: late records without a window, windows that are final, events from the future."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.commands import Commands
from tests.e2e.events import EACH, event, events, write_files, write_json
from tests.e2e.home import assert_true

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--wait", "0")
WINDOWED = 'by=["page"], window=fixed("1 minute"), measures'


@pytest.mark.parametrize("late", ["drop", "side"])
def test_without_a_window_records_behind_the_watermark_are_late(commands: Commands, late: str) -> None:
    home = commands.home
    home.change("page_views", WINDOWED, 'by=["page"], measures')
    home.change("page_views", 'late="side"', f'late="{late}"')
    paths = write_files(home, 4)
    behind = [event(800, at="2026-01-01T00:00:01Z"), event(801, at="2026-01-01T00:00:02Z")]
    write_json(paths[2], [*events(2)[2:], *behind])
    commands.good(*DRAIN)

    kept = [record for number in range(4) for record in events(number) if record not in events(2)[:2]]
    views = Counter(record["page"] for record in kept)
    spend = {page: sum(float(r["amount"]) for r in kept if r["page"] == page) for page in views}
    assert home.read("page_views") == sorted((page, str(views[page]), f"{spend[page]:.2f}") for page in views)
    assert [counted["late"] for counted in home.accounting("page_views").values()] == [0, 0, 2, 0]
    aside = commands.good("late", "page_views", "--json").out.splitlines()
    assert len(aside) == (2 if late == "side" else 0)
    error = commands.bad("read", "page_views", "--closed-only", kind="Refused", code=1)
    assert "no window" in error["what"]


def test_only_windows_that_the_watermark_has_passed_are_closed(commands: Commands) -> None:
    home = commands.home
    write_files(home)
    commands.good(*DRAIN)
    truth = home.truth("page_views", "side")
    watermark = truth.watermarks[3]
    assert watermark is not None
    closed = [row for row in truth.rows if row[2] <= watermark]
    assert home.read("page_views", closed_only=True) == closed
    assert 0 < len(closed) < len(truth.rows)


def test_events_too_far_ahead_are_dead_letters_and_move_nothing(commands: Commands) -> None:
    home = commands.home
    now = datetime.now(UTC)
    soon, far = (now + timedelta(minutes=minutes) for minutes in (50, 70))
    write_json(
        home.data("page_views") / "0.json",
        [event(0, at=now.isoformat()), event(1, at=far.isoformat())] + [event(2)] * 5,
    )
    write_json(home.data("page_views") / "1.json", [event(3, at=soon.isoformat())])
    commands.good("drain", "page_views", "--batch-records", "5", "--wait", "0")
    assert_true(home, "page_views", "side")
    assert [counted["dead"] for counted in home.accounting("page_views").values()] == [1, 0]
    assert "too far in the future" in commands.good("dead", "page_views").out
    status = commands.good("status", "page_views", "--json").data
    moved = datetime.fromisoformat(status["watermark"])
    assert moved == soon - timedelta(minutes=10)
