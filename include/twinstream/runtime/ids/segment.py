"""A segment: what some committed id files hold, as a Bloom filter in front of sorted hashes.

Both are mapped into memory, not read: looking up an id that is not there touches one word of the filter, and one in a
hundred of these, like one that is there, a few pages of the hashes. A segment is a cache: it names the files it is made
from, appears by one rename, and can be deleted at any time.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from twinstream.failpoints import durable
from twinstream.sinks.sync import sync_tree

BITS = 12
"""The filter's bits per id: with five of them set for each, one id in a hundred is a false alarm."""
_HASHES = 5


@dataclass(frozen=True, eq=False)
class Segment:
    """The hashes of the ids in some id files, with the span of their event times."""

    folder: Path
    paths: tuple[str, ...]
    """The id files, as the table names them."""
    rows: int
    lowest: int
    highest: int
    words: Any
    hashes: Any

    def maybe(self, wanted: Wanted) -> Any:
        """Those of the wanted hashes that the filter does not rule out."""
        import numpy as np

        there = np.take(self.words, wanted.places(len(self.words)))
        np.bitwise_and(there, wanted.bits, out=there)
        return wanted.hashes[there == wanted.bits]

    def found(self, wanted: Wanted) -> Any:
        """Those of the wanted hashes that are in the id files."""
        import numpy as np

        maybe = self.maybe(wanted)
        at = np.searchsorted(self.hashes, maybe)
        at[at == len(self.hashes)] = 0
        return maybe[self.hashes[at] == maybe]


class Wanted:
    """Hashes to be looked up in many segments: sorted, and where each is to be looked for is worked out once."""

    def __init__(self, hashes: Any) -> None:
        self.hashes = hashes
        self._places: dict[int, Any] = {}

    @cached_property
    def bits(self) -> Any:
        """What each sets in its word."""
        return _bits(self.hashes)

    def places(self, words: int) -> Any:
        """The word of each in a filter of so many; segments in a row are mostly of one size."""
        import numpy as np

        if words not in self._places:
            self._places = {words: _place(self.hashes, words).astype(np.intp)}
        return self._places[words]


def write_segment(into: Path, paths: Sequence[str], span: tuple[int, int], hashes: Any) -> Segment:
    """Makes the segment of id files that hold these hashes."""
    import numpy as np

    found = np.sort(hashes)
    places, bits = _place(found, words := max(1, len(found) * BITS // 64)), _bits(found)
    starts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
    filter_ = np.zeros(words, np.uint64)
    filter_[places[starts]] = np.bitwise_or.reduceat(bits, starts)
    about = {"paths": list(paths), "rows": len(found), "lowest": span[0], "highest": span[1]}
    name = secrets.token_hex(8)
    temporary, folder = into / f".{name}", into / name
    temporary.mkdir(parents=True)
    with durable("ids.segment"):
        np.save(temporary / "words.npy", filter_)
        np.save(temporary / "hashes.npy", found)
        (temporary / "about.json").write_text(json.dumps(about))
        sync_tree(temporary)
        temporary.rename(folder)
    return open_segment(folder)


def open_segment(folder: Path) -> Segment:
    """A segment that is there; raises OSError or ValueError where it is not, or not whole."""
    import numpy as np

    about = json.loads((folder / "about.json").read_text())
    words, hashes = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("words", "hashes"))
    if len(hashes) != about["rows"]:
        raise ValueError(f"{folder} is not whole")
    return Segment(folder, tuple(about["paths"]), about["rows"], about["lowest"], about["highest"], words, hashes)


def remove_segment(folder: Path) -> None:
    """Deletes a segment, or what is left of one; whoever has it open can go on."""
    with durable("ids.forget"):
        shutil.rmtree(folder, ignore_errors=True)


def _place(hashes: Any, words: int) -> Any:
    """The word that a hash belongs to; in the order of the hashes, so that sorted ones are looked up in one sweep."""
    import numpy as np

    return ((hashes >> np.uint64(32)) * np.uint64(words)) >> np.uint64(32)


def _bits(hashes: Any) -> Any:
    """The bits that a hash sets in its word."""
    import numpy as np

    found = np.zeros(len(hashes), np.uint64)
    for number in range(_HASHES):
        found |= np.uint64(1) << ((hashes >> np.uint64(6 * number)) & np.uint64(63))
    return found
