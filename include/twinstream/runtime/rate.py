"""The rate controller: groups as large as fit into the target duration, learned from the groups before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinstream.transaction import Batch

FIRST_GUESS = 16 * 1024 * 1024
"""Bytes per second and core before anything was measured."""
GROWTH = 4.0
"""A group is at most so many times as large as the largest that was measured."""
WEIGHT = 0.5
FLOOR = 64 * 1024


@dataclass
class RateController:
    """Sizes groups by bytes so that one takes about `target_seconds`; a fixed group size overrides it."""

    target_seconds: float
    bytes_per_second: float | None = None
    fixed_group: int | None = None
    _largest: int = field(default=0)

    def group_bytes(self) -> int:
        """How many bytes the next group may hold."""
        speed = self.bytes_per_second or FIRST_GUESS * (os.cpu_count() or 1)
        wanted = speed * self.target_seconds
        if self._largest:
            wanted = min(wanted, GROWTH * max(self._largest, FLOOR))
        return max(int(wanted), FLOOR)

    def observe(self, size: int, seconds: float) -> None:
        """Learns from a processed group."""
        self._largest = max(self._largest, size)
        if size < FLOOR or seconds <= 0:
            return
        speed = size / seconds
        if self.bytes_per_second is None:
            self.bytes_per_second = speed
        else:
            self.bytes_per_second += WEIGHT * (speed - self.bytes_per_second)

    def next_group(self, batches: Sequence[Batch]) -> list[Batch]:
        """The consecutive batches at the head that make the next group; at least one."""
        if self.fixed_group is not None:
            return list(batches[: self.fixed_group])
        limit, size = self.group_bytes(), 0
        group: list[Batch] = []
        for batch in batches:
            if group and size + batch.range.size > limit:
                break
            group.append(batch)
            size += batch.range.size
        return group
