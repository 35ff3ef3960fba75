"""Deduplication as users meet it: events generated with repeats, drained, shown, proven."""

from __future__ import annotations

from tests.e2e.commands import Commands
from tests.e2e.home import assert_true


def test_generated_repeats_are_told_everywhere_and_proven(commands: Commands) -> None:
    home = commands.home
    home.deduplicate("page_views", "1 day")
    made = commands.good(
        "generate", "page_views", "--events", "4000", "--duplicates", "0.1", "--events-per-file", "500", "--json"
    ).data
    drained = commands.good("drain", "page_views", "--batch-records", "1000", "--group", "2", "--json").data
    assert made["duplicates"] > 100
    assert drained["duplicate"] == made["duplicates"]
    assert_true(home, "page_views", "side")
    assert commands.good("status", "page_views", "--json").data["accounting"]["duplicate"] == made["duplicates"]
    assert f"duplicate {made['duplicates']}" in commands.good("status", "page_views").out
    proven = commands.good("reconcile", "page_views", "--json").data
    assert proven["verdict"] == "equal"
    assert proven["accounting"]["duplicate"][0] == made["duplicates"]
    (ids,) = [part for part in _lint(commands) if part["part"] == "ids"]
    assert "event_id within 1 day count once" in ids["reason"]


def _lint(commands: Commands) -> list[dict[str, str]]:
    parts: list[dict[str, str]] = commands.good("lint", "page_views", "--json").data["pipelines"][0]["guarantee"][
        "parts"
    ]
    return parts
