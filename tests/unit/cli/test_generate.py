from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest


def events(tmp_path, name):
    return [json.loads(line) for file in (tmp_path / "home" / "data" / name).iterdir() for line in file.open()]


@pytest.mark.parametrize(("watermark", "lateness"), [("2 hours", 6 * 60), ("1 minute", 3), (None, 30)])
def test_late_events_are_late_enough_for_the_watermark(run, write, tmp_path, watermark, lateness):
    changes = {"import Aggregate,": "import Watermark, Aggregate,"}
    if watermark:
        changes["record_id="] = f'watermark=Watermark(delay="{watermark}", late="side"),\n    record_id='
    write("visits", changes)
    said = run("generate", "visits", "--events", "1000", "--late", "0.5", "--start", "2026-01-31T12:00:00Z", "--json")
    assert said.code == 0
    start = datetime.fromisoformat("2026-01-31T12:00:00Z")
    times = [datetime.fromisoformat(event["at"]) for event in events(tmp_path, "visits")]
    late = [start - time for time in times if time < start]
    assert len(late) == said.data["late"]
    minutes = timedelta(minutes=1)
    # An event lies up to 15 seconds after the start here (100 a second, up to five seconds of jitter).
    assert min(late) > lateness * minutes - timedelta(seconds=15)
    assert max(late) <= 2 * lateness * minutes
    assert max(late) > 1.5 * lateness * minutes


def test_a_start_that_is_no_moment_is_bad_input(run, write):
    write("visits")
    said = run("generate", "visits", "--start", "yesterday")
    assert said.code == 2
    assert said.err.startswith("Bad setting: --start 'yesterday' is not a moment in time.")
