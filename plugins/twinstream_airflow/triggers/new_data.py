"""New data as an event: what is in the source against what the ledger knows, again and again, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

if TYPE_CHECKING:
    from twinstream.settings import Settings
    from twinstream.sources.base import History
    from twinstream.transaction import Range

POLL_SECONDS = 15.0


class NewDataTrigger(BaseEventTrigger):
    """Fires when the source holds something that no txid has. It keeps no state: after a restart it looks again."""

    def __init__(self, pipeline: str, poll_seconds: float = POLL_SECONDS) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return name, {"pipeline": self.pipeline, "poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from twinstream_airflow import settings

        told = 0
        while True:
            try:
                found = await asyncio.to_thread(waiting, await settings.of_trigger(self.pipeline), self.pipeline)
            except Exception as error:
                # A ledger that is down or a source that is not there is the micro-batch's to report; this only watches.
                self.log.warning("Cannot look for new data of %s: %s", self.pipeline, error)
                found = told
            if found and found != told:
                yield TriggerEvent({"pipeline": self.pipeline, "waiting": found})  # type: ignore[no-untyped-call]
            told = found
            await asyncio.sleep(self.poll_seconds)


def waiting(known: Settings, pipeline: str) -> int:
    """How much the source holds that no txid has, and nobody streams; makes neither a ledger nor a generation."""
    from twinstream.catalog import load_catalog
    from twinstream.cli.standing import existing_ledger
    from twinstream.runtime.plan import LedgerHistory
    from twinstream_airflow.pausing import held

    definition = load_catalog(known.pipelines).get(pipeline)
    with existing_ledger(known.ledger_url) as ledger:
        generation = ledger.generations.current(pipeline) if ledger else None
        if ledger and generation and held(ledger, generation.id):
            return 0
        history: History = LedgerHistory(ledger, generation) if ledger and generation else Nothing()
        return definition.pipeline.source.waiting(known.places(pipeline), history)


@dataclass(frozen=True)
class Nothing:
    """The history of a pipeline that was never run."""

    def last(self) -> Range | None:
        return None

    def known_folders(self) -> Mapping[str, int]:
        return {}

    def claimed(self, folder: str) -> set[str]:
        return set()
