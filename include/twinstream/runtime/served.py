"""What a real-time run has served, by the checkpoint that it leaves behind, and how the ledger learns of it.

Such a run has no txids. What it served is planned afterwards, as ranges that say so: draining them commits their rows
and closes the books like those of any other, and only sending them is left out. What a run that was killed had sent
since its last checkpoint is not known to be served, and is sent again: nothing is ever lost.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinstream.errors import LeaseHeld, Refused
from twinstream.failpoints import durable
from twinstream.ledger import Generation, Ledger, Planned, PlanRaced
from twinstream.ledger.runs import RUNNING
from twinstream.pipeline import Definition
from twinstream.runtime.holder import is_dead, is_same_process
from twinstream.runtime.plan import LedgerHistory
from twinstream.runtime.produce import SERVED
from twinstream.runtime.query import logged_offsets
from twinstream.sinks.sync import sync_file, sync_folder
from twinstream.sources.base import Places
from twinstream.sources.kafka.source import KafkaSource
from twinstream.sources.kafka.spans import Partition, Span, from_payload, to_payload

KIND = "real-time"


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a generation's real-time runs: whose it is, where the run began, and the query's own checkpoint."""

    folder: Path
    pipeline: str
    generation: str

    @classmethod
    def of(cls, places: Places, generation: Generation) -> Checkpoint:
        folder = places.home / "real-time" / generation.pipeline / generation.name
        return cls(folder, generation.pipeline, generation.name)

    @property
    def query(self) -> Path:
        """What Structured Streaming keeps."""
        return self.folder / "query"

    def begin(self, topics: Mapping[str, str], starts: Mapping[Partition, int]) -> None:
        """Starts anew; what the run before had served must be in the ledger by now."""
        self.forget()
        self.folder.mkdir(parents=True)
        spans = {partition: Span(start, start) for partition, start in starts.items()}
        told = {"pipeline": self.pipeline, "generation": self.generation, "starts": to_payload(topics, spans)}
        with durable("realtime.begin"):
            self._about.write_text(json.dumps(told), encoding="utf-8")
            sync_file(self._about)
            sync_folder(self.folder)

    def forget(self) -> None:
        with durable("realtime.forget"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def batches(self) -> int:
        """How many batches of the query ended."""
        return len(self._ended())

    def served(self) -> tuple[dict[str, str], dict[Partition, Span]]:
        """Ids of topics, and from where to where each partition was served; refuses what is another's."""
        if not self._about.exists():
            return {}, {}
        told = json.loads(self._about.read_text(encoding="utf-8"))
        if (told["pipeline"], told["generation"]) != (self.pipeline, self.generation):
            raise Refused(
                f"The checkpoint {self.folder} belongs to {told['pipeline']}, generation {told['generation']}.",
                next_step=f"Move it away. Without it what {self.pipeline} served in real time since its last drain is "
                "sent again.",
            )
        ids, begun = from_payload(told["starts"])
        if not (ended := self._ended()):
            return ids, {}
        ends = logged_offsets(self.query, max(ended))
        reached = {(topic, int(one)): end for topic, some in ends.items() if topic in ids for one, end in some.items()}
        # A partition that came later was served from its first record on.
        return ids, {one: Span(begun[one].start if one in begun else 0, end) for one, end in reached.items()}

    @property
    def _about(self) -> Path:
        return self.folder / "run.json"

    def _ended(self) -> set[int]:
        """Batches that the query has noted as planned and done."""
        noted = [
            {int(file.name) for file in folder.iterdir() if file.name.isdigit()} if folder.is_dir() else set()
            for folder in (self.query / "offsets", self.query / "commits")
        ]
        return noted[0] & noted[1]


def plan_served(ledger: Ledger, definition: Definition, generation_id: int, places: Places) -> int:
    """Logs what was served and not planned yet as txids; says how many. Repeating it changes nothing."""
    source = definition.pipeline.source
    assert isinstance(source, KafkaSource)
    while True:
        generation = ledger.generations.get(generation_id)
        ids, spans = Checkpoint.of(places, generation).served()
        history = LedgerHistory(ledger, generation)
        ranges = source.ranges_of(history.last(), ids, spans, definition.pipeline.batch_records, {SERVED: KIND})
        if not ranges:
            return 0
        with suppress(PlanRaced):
            planned = [Planned(one) for one in ranges]
            ledger.batches.plan(generation_id, generation.last_txid, planned, definition.hash)
            return len(ranges)


def refuse_while_served(ledger: Ledger, generation: Generation) -> None:
    """While a real-time run is at work nothing else may plan: its records would be sent twice."""
    newest = next((run for run in ledger.runs.newest(generation.id, 100) if run.kind == KIND), None)
    holder = ledger.leases.holder(generation.id)
    if newest is None or newest.state != RUNNING or holder is None or not holder[2] or is_dead(holder[0]):
        return
    if not is_same_process(newest.holder, holder[0]):
        return  # it is gone, and somebody else has the lease
    raise LeaseHeld(
        f"{generation.pipeline} is being served in real time by {holder[0]}.",
        untouched="Nothing was planned.",
        next_step="Stop that run first (Ctrl-C, or a pause); then what it served is drained like everything else.",
    )


def is_all_served(ledger: Ledger, generation: Generation) -> bool:
    """Whether all that is planned and not committed has reached the topic already."""
    left: list[Any] = ledger.batches.get(generation.id, generation.frontier + 1, generation.last_txid)
    return all(batch.range.payload.get(SERVED) for batch in left)
