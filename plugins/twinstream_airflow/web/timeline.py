"""The txids of a generation as a strip that can be read at 10 and at 100,000: one cell each, or neighbours together.

Txids commit in order, so that all up to the frontier are committed, and only open ones have to be looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from twinstream.transaction import State
from twinstream_airflow.web.models import Cell

MOST_CELLS = 160
FAILED = "FAILED"
"""Planned again after an attempt that failed: no state of the ledger, but what people want to see."""
BY_ATTENTION = (FAILED, State.HELD, State.PROCESSING, State.PROCESSED, State.PLANNED, State.COMMITTED)


def timeline(last: int, frontier: int, states: Mapping[int, str], failed: Collection[int]) -> list[Cell]:
    """Cells from txid 1 to `last`; `states` are those of open txids, and what it does not name is planned."""
    cells = min(last, MOST_CELLS)
    return [_cell(1 + last * n // cells, last * (n + 1) // cells, frontier, states, failed) for n in range(cells)]


def _cell(first: int, last: int, frontier: int, states: Mapping[int, str], failed: Collection[int]) -> Cell:
    counts: Counter[str] = Counter()
    done = min(last, frontier) - first + 1
    if done > 0:
        counts[State.COMMITTED.value] = done
    begin = max(first, frontier + 1)
    named = [txid for txid in range(begin, min(last, max(states, default=0)) + 1) if txid in states]
    for txid in named:
        counts[FAILED if txid in failed and states[txid] == State.PLANNED else str(states[txid])] += 1
    beyond = last - begin + 1 - len(named)
    if beyond > 0:
        counts[State.PLANNED.value] += beyond
    worst = next(state for state in BY_ATTENTION if counts[str(state)])
    return Cell(first=first, last=last, state=str(worst), counts=dict(counts))
