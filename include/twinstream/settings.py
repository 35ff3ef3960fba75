"""Settings from the environment, checked once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from twinstream.errors import SettingsError
from twinstream.sources.base import Places

PREFIX = "TWINSTREAM_"
TIME_ZONE = "UTC"
"""Event times, windows and casts mean UTC everywhere: results must not depend on where a job runs."""


@dataclass(frozen=True)
class Settings:
    """Where things are and how patient to be."""

    home: Path
    """Tables, ledger, reports; relative paths in definitions start here."""
    pipelines: Path
    ledger_url: str
    master: str
    jars: Path | None
    lease_seconds: float = 60.0
    group_seconds: float = 60.0
    """How long a group of txids should take; the rate controller sizes groups for it."""
    groups_in_flight: int = 2
    driver_memory: str = "1g"
    own_expectations: Path | None = None
    """The folder of the users' suites, where it is not beside the pipelines."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Who asked, as a scheduler puts it (its DAG, run, task and try): kept with every attempt and run."""
    connections: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How to reach brokers: what TWINSTREAM_KAFKA_DEFAULT says is the connection kafka_default, and so on."""

    @property
    def expectations(self) -> Path:
        """The folder of the users' suites."""
        return self.own_expectations or self.pipelines.parent / "expectations"

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if env is None else env
        home = Path(env.get("TWINSTREAM_HOME") or ".twinstream").expanduser().absolute()
        jars = env.get("TWINSTREAM_JARS")
        expectations = env.get("TWINSTREAM_EXPECTATIONS")
        return cls(
            home=home,
            pipelines=Path(env.get("TWINSTREAM_PIPELINES") or "include/pipelines").expanduser().absolute(),
            ledger_url=env.get("TWINSTREAM_LEDGER_URL") or f"sqlite:///{home / 'ledger.db'}",
            master=env.get("TWINSTREAM_MASTER") or "local[*]",
            jars=Path(jars).expanduser().absolute() if jars else None,
            lease_seconds=_positive(env, "TWINSTREAM_LEASE_SECONDS", 60.0),
            group_seconds=_positive(env, "TWINSTREAM_GROUP_SECONDS", 60.0),
            groups_in_flight=int(_positive(env, "TWINSTREAM_GROUPS_IN_FLIGHT", 2)),
            driver_memory=env.get("TWINSTREAM_DRIVER_MEMORY") or "1g",
            own_expectations=Path(expectations).expanduser().absolute() if expectations else None,
            context=_context(env.get("TWINSTREAM_CONTEXT")),
            connections={
                name.removeprefix(PREFIX).lower(): value
                for name, value in env.items()
                if name.startswith(f"{PREFIX}KAFKA") and value.strip()
            },
        )

    def places(self, pipeline: str) -> Places:
        return Places(self.home, self.home / "reinjected" / pipeline, self.connections)


def _context(text: str | None) -> dict[str, str]:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SettingsError(
            "TWINSTREAM_CONTEXT is not a JSON object.", next_step='Set it to something like {"run": "nightly"}, or not.'
        )
    return {str(name): str(value) for name, value in found.items()}


def _positive(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise SettingsError(f"{name} is {text!r}.", next_step=f"Set it to a number above 0, for example {default:g}.")
    return value
