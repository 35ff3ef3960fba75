"""Watermark: how far event time has come, and what happens to rows that come after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twinstream.durations import parse_duration
from twinstream.errors import DefinitionError

LATE = ("keep", "drop", "side")


@dataclass(frozen=True)
class Watermark:
    """The watermark follows the highest event time at `delay`; rows behind it are kept, dropped or put aside."""

    delay: str
    late: str = "keep"
    max_future: str | None = None
    """Events further ahead of the batch time than this are dead letters and move nothing."""

    def __post_init__(self) -> None:
        if self.late not in LATE:
            raise DefinitionError(
                f"Watermark(late={self.late!r}) is not known.", next_step=f"Use one of {', '.join(LATE)}."
            )
        parse_duration(self.delay, "Watermark(delay=…)")
        if self.max_future is not None:
            parse_duration(self.max_future, "Watermark(max_future=…)")

    @property
    def delay_micros(self) -> int:
        return parse_duration(self.delay, "Watermark(delay=…)")

    @property
    def max_future_micros(self) -> int | None:
        return None if self.max_future is None else parse_duration(self.max_future, "Watermark(max_future=…)")

    def canonical(self) -> dict[str, Any]:
        return {"delay": self.delay_micros, "late": self.late, "max_future": self.max_future_micros}
