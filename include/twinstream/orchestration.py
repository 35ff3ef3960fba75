"""When, where and for whom Airflow runs a pipeline; no part of the definition's hash."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from twinstream.durations import parse_duration
from twinstream.errors import DefinitionError

_MODES = ("microbatch", "continuous")
_DURATIONS = (
    "approval_timeout", "timeout", "retry_delay", "max_verdict_age", "max_lag", "every", "restart_delay", "visit",
)  # fmt: skip
_PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ("L",)),
    ("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")),
    ("day of the week", 0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
)
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?\Z")


@dataclass(frozen=True)
class Orchestration:
    """The schedules are cron expressions (in UTC) or presets such as @daily; None means on request only."""

    microbatch: str | None = None
    recompute: str | None = None
    reconcile: str | None = None
    watch: bool = True
    """Whether new data starts a micro-batch by itself, beside the schedule."""
    mode: str = "microbatch"
    """`continuous`: the continuous DAG of a pipeline that reads topics starts by itself once it is switched on."""
    every: str = "5 seconds"
    """How often a continuous query looks for new records."""
    restarts: int = 5
    """How often a continuous query that died or hangs is started again; one that lasted 10 minutes counts anew."""
    restart_delay: str = "10 seconds"
    """How long until the first of these; it doubles with every one."""
    visit: str = "2 minutes"
    """How often a task looks after a continuous query; one that was not visited for three times as long stops."""
    auto_repair: bool = False
    """Repair differences without asking a person."""
    approval_timeout: str = "1 day"
    """How long a repair waits for a person; nobody answering means no."""
    max_verdict_age: str | None = None
    """People are notified when the last verdict is older."""
    max_lag: str | None = None
    """People are notified when data has been waiting for longer."""
    spark: str = "spark_default"
    """The Airflow connection of the Spark to use: a master, or a Spark Connect server."""
    pool: str = "default_pool"
    """The Airflow pool whose slots limit how much Spark work runs at once."""
    timeout: str = "2 hours"
    """How long one task may work on Spark."""
    retries: int = 2
    """How often a task that failed is tried again, unless only a person can mend what failed it."""
    retry_delay: str = "20 seconds"
    """How long until the first of these tries; it doubles with every one."""
    owner: str = "twinstream"
    tags: Sequence[str] = ()
    notify: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Airflow notifiers for failed runs, by class: {"airflow.providers.….SmtpNotifier": {"to": "web@example.org"}}."""

    def __post_init__(self) -> None:
        for name in ("microbatch", "recompute", "reconcile"):
            _check_schedule(getattr(self, name), name)
        if self.mode not in _MODES:
            raise DefinitionError(f"Orchestration(mode={self.mode!r}) is none of {', '.join(_MODES)}.")
        for name in _DURATIONS:
            if getattr(self, name) is not None:
                self.duration(name)
        for name in ("spark", "pool", "owner"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise DefinitionError(f"Orchestration({name}={getattr(self, name)!r}) is not a name.")
        for name in ("retries", "restarts"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise DefinitionError(f"Orchestration({name}={value!r}) is not a number of 0 or more.")
        if not isinstance(self.tags, (tuple, list)):
            raise DefinitionError(f"Orchestration(tags={self.tags!r}) is no list.", next_step='Write tags=("web",).')

    def duration(self, name: str) -> timedelta:
        """One of the durations, as Airflow takes it."""
        return timedelta(microseconds=parse_duration(getattr(self, name), f"Orchestration({name}=…)"))


def _check_schedule(text: object, name: str) -> None:
    """Refuses what Airflow could not schedule: there it would take down the DAGs of every other pipeline too."""
    if text is None or text in _PRESETS:
        return
    fields = text.split() if isinstance(text, str) else []
    if len(fields) != len(_FIELDS):
        raise _bad(text, name, "it needs five fields (minute, hour, day, month, day of the week)")
    for value, (what, low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in value.split(","):
            if not _fits(part, low, high, names):
                raise _bad(text, name, f"{part!r} is no {what}")


def _fits(part: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    found = _PART.match(part)
    if found is None or found["step"] == "0":
        return False
    ends = [end for end in (found["first"], found["last"]) if end is not None]
    return all(end.upper() in names or (end.isdigit() and low <= int(end) <= high) for end in ends)


def _bad(text: object, name: str, why: str) -> DefinitionError:
    return DefinitionError(
        f"Orchestration({name}={text!r}) is not a schedule: {why}.",
        next_step=f"Write a cron expression such as '*/5 * * * *', or one of {', '.join(_PRESETS)}.",
    )
