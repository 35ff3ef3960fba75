"""Deduplicate: a record whose id was seen before, at about the same event time, is counted and goes no further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinstream.durations import parse_duration
from twinstream.errors import DefinitionError


@dataclass(frozen=True)
class Deduplicate:
    """The first record of an id counts, in the order of txids and, within one, of the source.

    A record is a duplicate if one before it, that is neither a dead letter nor late nor of a discarded txid, has the
    same record id and an event time at most `horizon` away.
    """

    horizon: str

    def __post_init__(self) -> None:
        if parse_duration(self.horizon, "Deduplicate(horizon=…)") < 1:
            raise DefinitionError(
                f"Deduplicate(horizon={self.horizon!r}) has no length.", next_step="Write for example '1 day'."
            )

    @property
    def horizon_micros(self) -> int:
        return parse_duration(self.horizon, "Deduplicate(horizon=…)")

    def canonical(self) -> dict[str, Any]:
        return {"horizon": self.horizon_micros}
