"""JSON gives back the very same result, and refuses what is no report."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.report.results import ALL, different
from twinstream.errors import ReportError
from twinstream.reconcile.result import (
    Cell,
    Comparison,
    Difference,
    Expectation,
    LateEffect,
    Reconciliation,
    Sample,
    Side,
    TxidDifferences,
    Verdict,
)
from twinstream.report.as_json import VERSION, from_json, to_json
from twinstream.report.html import to_html
from twinstream.report.text import to_text
from twinstream.transaction import Accounting, Tally

texts = st.text(max_size=12)
maybe = st.none() | texts
numbers = st.integers(0, 2**62)
small = st.integers(0, 10**15)
seconds = st.floats(0, 1e6, allow_nan=False)
counts = st.dictionaries(st.sampled_from(Difference), small, max_size=4)
cells = st.builds(Cell, texts, maybe, maybe, maybe)
txids = st.lists(small, max_size=3).map(tuple)
samples = st.builds(
    Sample,
    st.sampled_from(Difference),
    st.dictionaries(texts, maybe, max_size=3),
    st.lists(cells, max_size=3).map(tuple),
    small,
    small,
    txids,
)
sides = st.builds(Side, texts, small, texts, seconds)
comparisons = st.builds(
    Comparison,
    sides,
    sides,
    counts,
    st.lists(samples, max_size=3).map(tuple),
    st.lists(small, max_size=9).map(tuple),
    small,
    small,
    seconds,
)
tallies = st.builds(Tally, small, numbers, numbers)
results = st.builds(
    Reconciliation,
    id=texts,
    pipeline=texts,
    generation=texts,
    kind=texts,
    frontier=small,
    definition_hash=texts,
    started_at=small,
    seconds=seconds,
    verdict=st.sampled_from(Verdict),
    comparison=comparisons,
    txids=st.lists(st.builds(TxidDifferences, small, small, counts), max_size=3).map(tuple),
    accounting=st.builds(Accounting, tallies, tallies, tallies, tallies, tallies, tallies, small),
    late=st.builds(LateEffect, small, small),
    expectations=st.lists(st.builds(Expectation, texts, texts, texts, st.booleans(), texts, maybe), max_size=3).map(
        tuple
    ),
    scanned_in_full_at=st.none() | small,
    scanned_in_full_to=small,
    causes=st.lists(texts, max_size=2).map(tuple),
    next_steps=st.lists(texts, max_size=2).map(tuple),
    versions=st.dictionaries(texts, texts, max_size=2),
)


@settings(max_examples=40)
@given(results)
def test_any_result_comes_back_as_it_was_and_can_be_shown(result):
    again = from_json(to_json(result))
    assert again == result
    assert [list(sample.key) for sample in again.comparison.samples] == [
        list(sample.key) for sample in result.comparison.samples
    ]
    assert to_html(again) == to_html(result)
    assert to_text(again) == to_text(result)


def test_the_version_of_the_schema_stands_first():
    assert next(iter(json.loads(to_json(different())))) == "schema"


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '"x"', '{"schema": 1}', "<html>"])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ReportError, match="no report"):
        from_json(text)


def test_a_report_of_another_version_is_refused_by_name():
    newer = json.loads(to_json(different())) | {"schema": VERSION + 1}
    with pytest.raises(ReportError, match=f"schema {VERSION + 1}"):
        from_json(json.dumps(newer))


@pytest.mark.parametrize("name", ALL)
def test_a_kind_that_is_not_known_is_refused(name):
    value = json.loads(to_json(ALL[name]())) | {"verdict": "perhaps"}
    with pytest.raises(ReportError):
        from_json(json.dumps(value))
