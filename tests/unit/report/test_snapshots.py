"""The three forms of the report are what they were when people last looked at them."""

from __future__ import annotations

import pytest

from tests.unit.report.results import ALL
from tests.unit.report.snapshots import assert_snapshot
from twinstream.report.as_json import to_json
from twinstream.report.html import to_html
from twinstream.report.text import to_text


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("form", "write"), [("html", to_html), ("txt", to_text), ("json", to_json)])
def test_a_report_reads_as_it_did(name, form, write):
    assert_snapshot(f"{name}.{form}", write(ALL[name]()))
