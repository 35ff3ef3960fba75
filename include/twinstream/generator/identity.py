"""Record ids: unique in a run and, for wide columns, all but surely across runs, yet scattered like real ones."""

from __future__ import annotations

import hashlib
from decimal import Decimal

from twinstream.errors import DefinitionError
from twinstream.generator.kinds import INTEGER_BITS, Kind

_ODD = 0x9E3779B97F4A7C15


class RecordIds:
    """The id of event n is n * odd + key modulo a power of two: a bijection, so no two events share one."""

    def __init__(self, column: str, kind: Kind, *, seed: int, start: str, events: int) -> None:
        self._kind = kind
        bits = _bits(kind)
        if bits is None or events > 2**bits:
            raise DefinitionError(
                f"Column {column} of type {kind.name} cannot hold {events:,} different record ids.",
                next_step="Use a string or bigint column as record id.",
            )
        self._mask = 2**bits - 1
        self._key = int.from_bytes(hashlib.sha256(f"{seed}/{start}".encode()).digest()[:8], "big")

    def take(self, first: int, count: int) -> list[object]:
        """The ids of the events first, first + 1, …"""
        key, mask = self._key, self._mask
        numbers = [(n * _ODD + key) & mask for n in range(first, first + count)]
        if self._kind.name == "string":
            return [f"{number:016x}" for number in numbers]
        if self._kind.name == "decimal":
            return [Decimal(number) for number in numbers]
        return list(numbers)


def _bits(kind: Kind) -> int | None:
    if kind.name == "string":
        return 64
    if kind.name == "decimal":
        whole: int = 10 ** (kind.precision - kind.scale)
        return min(63, whole.bit_length() - 1)
    return INTEGER_BITS.get(kind.name)
