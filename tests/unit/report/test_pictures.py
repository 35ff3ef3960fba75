"""The pictures show what was counted: in proportion, in their place, and nothing too small to be seen."""

from __future__ import annotations

import re

import pytest

from tests.unit.report.results import HOUR, START
from twinstream.reconcile.result import Difference, TxidDifferences
from twinstream.report.flow import flow
from twinstream.report.heat import LEVELS, Patch, strip
from twinstream.report.plot import HEIGHT, plot
from twinstream.transaction import Accounting, Tally


def test_bands_are_as_thick_as_their_share():
    found = flow(Accounting(emitted=Tally(75), filtered=Tally(25)))
    thick = {band.name: float(re.search(r"v([\d.]+)", band.path)[1]) for band in found.bands if band.path}
    assert thick["emitted"] == pytest.approx(3 * thick["filtered"])
    assert found.read == 100


def test_a_class_with_one_record_in_a_million_is_still_seen():
    found = flow(Accounting(emitted=Tally(999_999), dead=Tally(1)))
    assert next(band for band in found.bands if band.name == "dead").path
    assert next(band for band in found.bands if band.name == "dead").share == "< 0.1 %"
    assert next(band for band in found.bands if band.name == "emitted").share == "99.9 %"


def test_a_class_without_records_has_no_band():
    assert [band.name for band in flow(Accounting(emitted=Tally(1))).bands if band.path] == ["emitted"]
    assert not [band for band in flow(Accounting()).bands if band.path]


def test_one_differing_row_is_seen_beside_a_million():
    found = strip((0, 1, 0, 1_000_000))
    assert found.patches == (Patch(1, 1, 1), Patch(3, 1, LEVELS))


def test_neighbours_of_one_warmth_are_one_patch():
    assert strip((5, 5, 5, 0, 5)).patches == (Patch(0, 3, LEVELS), Patch(4, 1, LEVELS))


def test_bars_stand_where_their_batch_stands_in_time():
    late = {Difference.LATE: 1}
    found = plot([TxidDifferences(txid, START + hours * HOUR, late) for txid, hours in ((1, 0), (2, 1), (3, 4))])
    first, second, third = (bar.x for bar in found.bars)
    assert (second - first) / (third - first) == pytest.approx(0.25)


def test_the_pieces_of_a_bar_stack_up_to_its_rows():
    counts = {Difference.MISSING: 1, Difference.LATE: 3}
    bar = plot([TxidDifferences(7, START, counts)]).bars[0]
    assert sum(piece.height for piece in bar.pieces) == HEIGHT
    assert bar.pieces[0].top == bar.pieces[1].top + bar.pieces[1].height
    assert (bar.first, bar.last, bar.rows) == (7, 7, 4)


def test_many_txids_share_bars_and_none_is_lost():
    found = plot([TxidDifferences(txid, START + txid, {Difference.MISSING: 2}) for txid in range(10_000)])
    assert len(found.bars) <= 101
    assert sum(bar.rows for bar in found.bars) == 20_000


def test_without_named_txids_there_is_no_plot():
    assert plot([]) is None
    assert plot([TxidDifferences(1, START, {Difference.MISSING: 0})]) is None
