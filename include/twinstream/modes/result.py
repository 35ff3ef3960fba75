"""What comparing the modes of a pipeline found, and the answer it gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

DEAR = 1.5
"""A mode that costs more than this many times as much needs a reason."""


@dataclass(frozen=True)
class Measured:
    """One mode: seconds, records per second, CPU seconds; None where it could not be measured, `why_not` says why."""

    mode: str
    why_not: str | None = None
    p50: float | None = None
    p99: float | None = None
    records_per_second: float | None = None
    cpu_per_million: float | None = None
    recovery: float | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Compared:
    """All modes on the same records."""

    pipeline: str
    at: str
    records: int
    seconds: float
    """How long the records took to come; for micro-batches also how often a drain begins."""
    every: str
    """The trigger of the continuous query."""
    modes: tuple[Measured, ...]

    @property
    def same(self) -> bool:
        """Whether all modes gave the same result."""
        return len({one.digest for one in self.modes if one.why_not is None}) == 1

    @property
    def advice(self) -> str:
        """Which mode to use, by these figures."""
        able = [one for one in self.modes if one.why_not is None]
        if not self.same:
            return "Use neither before you know why: they gave different results from the same records."
        if len(able) == 1:
            others = "; ".join(one.why_not for one in self.modes if one.why_not is not None)
            return f"Use {able[0].mode}: {others}"
        slow = [one for one in able if (one.records_per_second or 0) < self.records / self.seconds]
        able = [one for one in able if one not in slow] or able
        if len(able) == 1:
            return f"Use {able[0].mode}: at {self.records / self.seconds:,.0f} records/s nothing else keeps up."
        quick = min(able, key=lambda one: one.p99 or 0)
        cheap = min(able, key=lambda one: one.cpu_per_million or 0)
        times = (quick.cpu_per_million or 1) / (cheap.cpu_per_million or 1)
        if times <= DEAR:
            return (
                f"Use {quick.mode}: 99 % of the records are visible after {quick.p99:.1f} s, "
                f"and it costs {times:.1f} × the CPU of the cheapest mode."
            )
        return (
            f"Use {cheap.mode}, unless results must be younger than {cheap.p99:.1f} s: {quick.mode} shows them after "
            f"{quick.p99:.1f} s, for {times:.1f} × the CPU."
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "modes": [asdict(one) for one in self.modes], "same": self.same, "advice": self.advice}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Compared:
        known = {name: value[name] for name in ("pipeline", "at", "records", "seconds", "every")}
        return cls(**known, modes=tuple(Measured(**one) for one in value["modes"]))
