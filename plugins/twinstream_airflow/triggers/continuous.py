"""Watches a continuous query by the ledger, and renews that it is wanted; no worker is held meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from twinstream.errors import Fenced

if TYPE_CHECKING:
    from twinstream.settings import Settings

POLL_SECONDS = 5.0
LAPSES = 3
"""A query that was not visited for so many times the usual is not wanted any more."""


class ContinuousTrigger(BaseTrigger):
    """Fires when the query has ended, is dead or hangs, or when it is time for a visit by the task.

    A task of a DAG that is paused is not run, so that the visit does not come, the query is not wanted any more, and
    ends in order; when the DAG goes on, so does the task, and starts it again.
    """

    def __init__(self, pipeline: str, supervision: int, visit_seconds: float, poll_seconds: float = POLL_SECONDS):
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.supervision = supervision
        self.visit_seconds = visit_seconds
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        kept = ("pipeline", "supervision", "visit_seconds", "poll_seconds")
        return name, {one: getattr(self, one) for one in kept}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        visit = time.monotonic() + self.visit_seconds
        while True:
            try:
                found = await self._ask(look_after, self.visit_seconds * LAPSES)
            except Exception as error:
                # A ledger that is down for a while is no reason to start anything: the query notices it by itself.
                self.log.warning("Cannot look after %s: %s", self.pipeline, error)
                found = None
            if found is None and time.monotonic() >= visit:
                found = {"state": "visit"}
            if found is not None:
                yield TriggerEvent(found)  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(self.poll_seconds)

    async def on_kill(self) -> None:
        """The task was cleared or marked: nobody wants the query any more."""
        await self._ask(let_go)

    async def _ask(self, what: Any, *more: Any) -> Any:
        from twinstream_airflow import settings

        known = await settings.of_trigger()
        return await asyncio.to_thread(what, known, self.supervision, *more)


def look_after(known: Settings, supervision: int, seconds: float) -> dict[str, Any] | None:
    """What there is to tell; None as long as the query is well, which is then wanted for some more seconds."""
    from twinstream.ledger import Ledger
    from twinstream.runtime import supervision as watching
    from twinstream.runtime.continuous import PAUSE
    from twinstream_airflow.pausing import paused

    ledger = Ledger.open(known.ledger_url, create=False)
    try:
        found = watching.look(ledger, supervision)
        if "error" in found.said:
            return {"state": "failed", "error": dict(found.said["error"])}
        if found.said.get("ended") == PAUSE and paused(ledger, found.run.generation):
            return None
        if found.over:
            return {"state": "ended", "said": dict(found.said)}
        if (why := found.gone) is not None:
            return {"state": "gone", "why": why}
        if not found.wanted:
            return {"state": "lapsed"}
        with suppress(Fenced):
            watching.renew(ledger, supervision, seconds)
        return None
    finally:
        ledger.close()


def let_go(known: Settings, supervision: int) -> None:
    """Ends the supervision, and so the query."""
    from twinstream.ledger import Ledger
    from twinstream.runtime import supervision as watching

    ledger = Ledger.open(known.ledger_url, create=False)
    try:
        watching.end(ledger, supervision)
    finally:
        ledger.close()
