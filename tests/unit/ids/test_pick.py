"""Picking rows by their hashes: all that have one of them and no others, however alike the first bits are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from twinstream.runtime.ids.pick import Among, pick

HASHES = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**44, 2**44 + 1, 2**63, 2**64 - 1]))


def hashes(values: Sequence[int | None]) -> pa.Array:
    return pa.array([None if one is None else one - 2**64 if one >= 2**63 else one for one in values], pa.int64())


@given(wanted=st.sets(HASHES, min_size=1), there=st.lists(st.one_of(st.none(), HASHES)))
def test_a_hash_is_found_wherever_it_is(wanted: set[int], there: list[int | None]) -> None:
    found = Among(np.array(list(wanted), np.uint64)).where(hashes(there))
    assert found.tolist() == [place for place, one in enumerate(there) if one in wanted]


def test_rows_are_picked_from_every_part_of_every_file_under_other_names(tmp_path: Path) -> None:
    for name, values in (("a", [7, None, 0, 9]), ("b", [1, 2, 3, 4]), ("c", [2**63, 7, 7, 5])):
        rows = {"_id_hash": hashes(values), "id": [f"{name}{one}" for one in range(4)]}
        rows |= {"at": pa.array(range(4), pa.timestamp("us", "UTC"))}
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet", row_group_size=2)
    files = sorted(tmp_path.glob("*.parquet"))
    wanted = np.array([0, 7, 2**63], np.uint64)
    pick(files, wanted, tmp_path / "picked", {"id": "_record_id", "at": "_event_micros"})
    picked = sorted((tmp_path / "picked").iterdir())
    found = [tuple(row.values()) for file in picked for row in pq.read_table(file).to_pylist()]
    assert found == [("a0", 0, 0), ("a2", 2, 2), ("c0", 0, 0), ("c1", 1, 1), ("c2", 2, 2)], "with the number of the row"
    assert len(picked) == 2, "a file without any leaves none"
