"""The endless stream of records, in blocks: values, then each record's fate (good, late, duplicate or poison)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random

from twinstream.generator.forms import Cell, Form, Record, Row
from twinstream.generator.identity import RecordIds
from twinstream.generator.kinds import Kind
from twinstream.generator.pools import Pool, make_pool
from twinstream.generator.times import Clock, TimeColumn

BLOCK = 10_000
RECENT = 10_000


@dataclass(frozen=True)
class Shares:
    """How often a record is something other than good, and how much older a late one is (up to twice as much)."""

    duplicates: float
    late: float
    poison: float
    lateness: int


@dataclass(frozen=True)
class Block:
    """Up to BLOCK records with the count of each special fate."""

    records: list[Record]
    duplicates: int
    late: int
    poison: int


class Stream:
    """Blocks have a fixed size and every concern its own random numbers.

    So the n-th record is the same however many records are asked for and however they are cut into files, and one
    share can be changed without changing the values of the other records.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        form: Form,
        ids: RecordIds,
        clock: Clock,
        *,
        record_id: str,
        time: TimeColumn,
        shares: Shares,
        seed: int,
        start: datetime,
    ) -> None:
        self._kinds, self._form, self._ids, self._clock = kinds, form, ids, clock
        self._record_id, self._time, self._shares = record_id, time, shares
        self._values, self._fates, self._late, self._poison, self._repeats = (
            Random(f"{seed}/{concern}") for concern in ("values", "fates", "late", "poison", "repeats")
        )
        self._pools: dict[str, tuple[list[Cell], Pool]] = {}
        for name, kind in kinds.items():
            if name not in {record_id, time.name}:
                pool = make_pool(name, kind, Random(f"{seed}/pool/{name}"), start)
                self._pools[name] = form.cells(kind, pool.values), pool
        self._recent: list[Row] = []

    def blocks(self, events: int) -> Iterator[Block]:
        for first in range(0, events, BLOCK):
            yield self._block(first, min(BLOCK, events - first))

    def _block(self, first: int, count: int) -> Block:
        poisoned, late, repeated = self._draw_fates(count)
        micros = self._clock.take(first, BLOCK)[:count]
        lateness = self._shares.lateness
        for slot in late:
            micros[slot] -= lateness + self._late.randrange(lateness + 1)
        rows = self._rows(first, count, micros)
        duplicates = self._repeat(rows, repeated, poisoned)
        records = self._form.records(rows)
        for slot in poisoned:
            records[slot] = self._form.poison(rows[slot], micros[slot], self._poison)
        self._remember(rows, poisoned)
        return Block(records, duplicates=duplicates, late=len(late), poison=len(poisoned))

    def _draw_fates(self, count: int) -> tuple[dict[int, None], list[int], list[int]]:
        """Slots of poison, late and repeated records; a dict for the first keeps order and is quick to ask."""
        shares = self._shares
        below_late = shares.poison + shares.late
        below_repeated = below_late + shares.duplicates
        draws = [self._fates.random() for _ in range(BLOCK)]
        special = [slot for slot, draw in enumerate(draws[:count]) if draw < below_repeated]
        return (
            dict.fromkeys(slot for slot in special if draws[slot] < shares.poison),
            [slot for slot in special if shares.poison <= draws[slot] < below_late],
            [slot for slot in special if below_late <= draws[slot]],
        )

    def _rows(self, first: int, count: int, micros: list[int]) -> list[Row]:
        columns: list[list[Cell]] = []
        for name, kind in self._kinds.items():
            if name == self._record_id:
                columns.append(self._form.cells(kind, self._ids.take(first, count)))
            elif name == self._time.name:
                columns.append(self._form.time_cells(micros))
            else:
                cells, pool = self._pools[name]
                columns.append(self._values.choices(cells, cum_weights=pool.cumulative, k=BLOCK)[:count])
        return list(zip(*columns, strict=True))

    def _repeat(self, rows: list[Row], slots: list[int], poisoned: Mapping[int, None]) -> int:
        """Put recent records, of this block or the last, in the place of new ones; poison is not repeated."""
        done = 0
        for slot in slots:
            for _ in range(20):
                oldest = -len(self._recent)
                if oldest == slot:
                    break
                source = self._repeats.randrange(oldest, slot)
                if source not in poisoned:
                    rows[slot] = rows[source] if source >= 0 else self._recent[source]
                    done += 1
                    break
        return done

    def _remember(self, rows: list[Row], poisoned: Mapping[int, None]) -> None:
        if self._shares.duplicates:
            good = [row for slot, row in enumerate(rows) if slot not in poisoned]
            self._recent = (self._recent + good)[-RECENT:]
