"""What staged files hold, against sums in plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinstream.runtime import summary
from twinstream.runtime.summary import Closing, Seen, closed, summarised
from twinstream.transaction import Tally

MICROS = pa.timestamp("us", "UTC")
CLOSING = Closing("window_start", 60)
MASK = (1 << 64) - 1
KINDS = {"window_start": MICROS, "_event_time": MICROS, "_first": pa.bool_(), "_class": pa.int32()}
Row = dict[str, Any]


def a_hash(rng: random.Random) -> int:
    return rng.choice([0, 1, -1, 2**63 - 1, -(2**63), rng.randrange(-(2**63), 2**63)])


def a_row(rng: random.Random, by_record: bool) -> Row:
    moment = rng.choice([None, rng.randrange(-1000, 1000)])
    made: Row = {
        "_txid": rng.randint(1, 3),
        "_class": rng.randint(0, 5),
        "_digest": rng.choice([None, a_hash(rng)]),
        "window_start": rng.choice([None, rng.randrange(1000)]),
    }
    if by_record:
        return made | {"_hash": a_hash(rng), "_first": rng.choice([None, False, True]), "_event_time": moment}
    some = {name: rng.choice([None, rng.randrange(1 << 32)]) for name in ("_records", "_low", "_high")}
    return made | some | {"_xor": a_hash(rng), "_highest": moment}


def written(folder: Path, rows: list[Row]) -> list[Path]:
    """The rows in two files."""
    schema = pa.schema([(name, KINDS.get(name, pa.int64())) for name in rows[0]])
    paths = [folder / "one.parquet", folder / "two.parquet"]
    for path, some in zip(paths, (rows[::2], rows[1::2]), strict=True):
        pq.write_table(pa.Table.from_pylist(some, schema), path)
    return paths


def tally_of(rows: list[Row], by_record: bool) -> Tally:
    if by_record:
        hashes = [row["_hash"] & MASK for row in rows if row["_first"]]
        return Tally(len(hashes), sum(hashes) & MASK, reduce(xor, hashes, 0))
    parts = [Tally.of_halves(row["_records"], row["_low"], row["_high"], row["_xor"]) for row in rows]
    return reduce(lambda one, other: one + other, parts, Tally())


def grouped(rows: list[Row], *names: str) -> dict[tuple[int, ...], list[Row]]:
    found: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


@pytest.mark.parametrize("by_record", [False, True])
@pytest.mark.parametrize("at_once", [7, 1 << 20])
def test_every_txid_and_class_adds_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, by_record: bool, at_once: int
) -> None:
    monkeypatch.setattr(summary, "_AT_ONCE", at_once)
    rng = random.Random(seed)
    rows = [a_row(rng, by_record) for _ in range(100)]
    moment = "_event_time" if by_record else "_highest"
    expected = {}
    for key, some in grouped(rows, "_txid", "_class").items():
        digests = [(row["_digest"] or 0) & MASK for row in some]
        expected[key] = Seen(
            tally_of(some, by_record),
            len(some),
            max((row[moment] for row in some if row[moment] is not None), default=None),
            min((row["window_start"] + 60 for row in some if row["window_start"] is not None), default=None),
            Tally(len(some), sum(digests) & MASK, reduce(xor, digests, 0)),
        )
    assert summarised(written(tmp_path, rows), by_record, CLOSING) == expected


@pytest.mark.parametrize("by_record", [False, True])
def test_rows_closed_at_the_limit_of_their_txid(tmp_path: Path, seed: int, by_record: bool) -> None:
    rng = random.Random(seed)
    rows = [a_row(rng, by_record) for _ in range(100)]
    closes = {row["_txid"]: row["window_start"] + 60 for row in rows if row["window_start"] is not None}
    limits = {1: closes[1], 2: closes[2]}
    late = [
        row
        for row in rows
        if row["window_start"] is not None and row["window_start"] + 60 <= limits.get(row["_txid"], -1)
    ]
    expected = {txid: (tally_of(some, by_record), len(some)) for (txid,), some in grouped(late, "_txid").items()}
    assert closed(written(tmp_path, rows), by_record, CLOSING, limits) == expected


def test_discarded_records_have_no_state(tmp_path: Path) -> None:
    rows = [{"_txid": 1, "_class": 3, "_hash": 5, "_first": True, "_event_time": None}]
    assert summarised(written(tmp_path, rows), True, CLOSING) == {(1, 3): Seen(Tally(1, 5, 5), 1, digest=Tally(1))}


def test_no_files_hold_nothing() -> None:
    assert summarised([], False, None) == {}
