"""A ledger with made-up but valid rows, filled quickly: what pages are made of, at any size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from sqlalchemy import insert

from tests.unit.ledger.bench import files
from tests.unit.report import results
from twinstream.ledger import Ledger
from twinstream.ledger.attempts import counted
from twinstream.ledger.runs import CONTINUOUS, STREAM_SECONDS
from twinstream.ledger.schema import attempts, batches, generations, journal, leases, runs
from twinstream.reconcile.certificate import certificate, save
from twinstream.reconcile.result import Reconciliation
from twinstream.report.as_json import to_dict
from twinstream.transaction import Accounting, Tally, canonical_json

SECOND = 1_000_000
MINUTE = 60 * SECOND
ASKED_BY = {"dag_id": "page_views__microbatch", "run_id": "manual__2026 1", "task_id": "drain", "try_number": "2"}
STREAMED_BY = {"dag_id": "page_views__continuous", "run_id": "manual__2", "task_id": "stream", "supervision": "7"}
DEFINITION = '''"""Made up."""

from twinstream import Aggregate, DeltaSink, FileSource, Orchestration, Pipeline, Watermark, count, fixed, sum_

pipeline = Pipeline(
    name="{name}",
    source=FileSource(
        "data/{name}", format="json", schema="event_id string, page string, amount decimal(12,2), at timestamp"
    ),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page is not null",
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={{"views": count(), "spend": sum_("amount")}}),
    watermark=Watermark(delay="10 minutes", late="side", max_future="1 hour"),
    sink=DeltaSink("tables/{name}"),
    orchestration=Orchestration(max_verdict_age="36 hours", max_lag="1 hour"),
)
'''


class Made:
    """One home with its ledger and its definitions."""

    def __init__(self, folder: Path, ledger_url: str = "") -> None:
        self.home = folder / "home"
        self.pipelines = folder / "pipelines"
        self.pipelines.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.url = ledger_url or f"sqlite:///{self.home / 'ledger.db'}"
        self.ledger = Ledger.open(self.url)
        with self.ledger.database.read() as connection:
            self.now = self.ledger.database.now(connection)

    def define(self, name: str) -> str:
        """A definition; returns its hash."""
        from twinstream.catalog import load_catalog

        (self.pipelines / f"{name}.py").write_text(DEFINITION.format(name=name))
        return load_catalog(self.pipelines).get(name).hash

    def generation(self, name: str, hash: str, committed: int, waiting: int = 0, state: str = "current") -> int:
        """A generation with so many committed txids, in groups of ten, and so many that are planned."""
        generation = self.ledger.generations.open(name, hash, "{}").id
        groups = [min((txid - 1) // 10 * 10 + 10, committed) for txid in range(1, committed + 1)]
        ends = [self.now - (committed - last + 1) * MINUTE for last in groups]
        with self.ledger.database.write("made") as connection:
            connection.execute(
                generations.update()
                .where(generations.c.id == generation)
                .values(
                    last_txid=committed + waiting, frontier=committed, watermark=self.now - 11 * MINUTE, state=state
                )
            )
            for many in _some(self._batches(generation, hash, committed, waiting, ends)):
                connection.execute(insert(batches), many)
            for many in _some(self._attempts(generation, committed, ends)):
                connection.execute(insert(attempts), many)
            connection.execute(
                insert(leases).values(
                    generation=generation, epoch=3, holder="host:1:abc", expires_at=0, taken_at=self.now - MINUTE
                )
            )
            connection.execute(
                insert(journal).values(
                    generation=generation, at=self.now - 9 * MINUTE, kind="take-over", txid=None,
                    detail="host:2 (epoch 3) took over from host:1 (epoch 2)",
                )
            )  # fmt: skip
        return generation

    def _batches(self, generation: int, hash: str, committed: int, waiting: int, ends: list[int]) -> Iterator[dict]:
        for txid in range(1, committed + waiting + 1):
            done = txid <= committed
            records = 100_000 + txid % 7 * 1_000
            part = files(f"day/{txid:06}.json", records=records)
            late, dead, filtered = txid % 11 * 90, txid % 5 * 8, records // 9
            books = Accounting(
                dead=Tally(dead, 5, 6), filtered=Tally(filtered, 3, 4), late=Tally(late, 1, 2),
                emitted=Tally(records - late - dead - filtered, 7, 8), rows_out=4_000 + txid % 100,
            )  # fmt: skip
            yield {
                "generation": generation,
                "txid": txid,
                "state": "COMMITTED" if done else "PLANNED",
                "range": canonical_json(part.to_dict()),
                "range_digest": part.digest,
                "records": records,
                "bytes": records * 90,
                "batch_time": ends[txid - 1] - (20 + txid % 13) * SECOND if done else self.now - 4 * MINUTE,
                "definition_hash": hash,
                "attempt": self._attempt_id(generation, txid) if done else None,
                "input": json.dumps(books.read.to_list()) if done else None,
                "accounting": canonical_json(books.to_dict()) if done else None,
                **{name: many if done else None for name, many in counted(books).items()},
                "digest": json.dumps(Tally(4_000, txid, txid).to_list()) if done else None,
                "highest_event_time": ends[txid - 1] - MINUTE if done else None,
                "watermark": ends[txid - 1] - 11 * MINUTE if done else None,
                "epoch": 3 if done else None,
                "committed_at": ends[txid - 1] if done else None,
            }

    def _attempts(self, generation: int, committed: int, ends: list[int]) -> Iterator[dict]:
        for first in range(1, committed + 1, 10):
            last = min(first + 9, committed)
            yield {
                "id": self._attempt_id(generation, first), "generation": generation, "first_txid": first,
                "last_txid": last, "number": 1, "epoch": 3, "holder": "host:1:abc", "outcome": "committed",
                "staging": "s", "started_at": ends[last - 1] - 9 * SECOND, "ended_at": ends[last - 1],
                "context": canonical_json(ASKED_BY), "cleaned": True,
            }  # fmt: skip

    @staticmethod
    def _attempt_id(generation: int, txid: int) -> int:
        return generation * 1_000_000 + (txid - 1) // 10 + 1

    def hold(self, generation: int, txid: int, reason: str) -> None:
        self._change(generation, txid, state="HELD", held_reason=reason)

    def process(self, generation: int, txid: int, state: str = "PROCESSING") -> None:
        self._change(generation, txid, state=state)

    def fail(self, generation: int, first: int, last: int, error: str) -> None:
        """The newest attempt at these txids failed."""
        with self.ledger.database.write("made") as connection:
            connection.execute(
                insert(attempts).values(
                    generation=generation, first_txid=first, last_txid=last, number=2, epoch=3, holder="host:1:abc",
                    outcome="failed", staging="s", started_at=self.now - MINUTE, ended_at=self.now - MINUTE // 2,
                    error=error, cleaned=False,
                )
            )  # fmt: skip

    def stream(
        self, generation: int, state: str = "running", *, seen: int = 3 * SECOND, error: str | None = None
    ) -> None:
        """A continuous run that has shown itself so long ago."""
        facts = {"every": "5 seconds", "behind": 1234.0, "records_per_second": 5678.0, "seconds": 1.5}
        with self.ledger.database.write("made") as connection:
            connection.execute(
                insert(runs).values(
                    generation=generation, kind=CONTINUOUS, frontier=3, scope="{}", definition_hash="h", state=state,
                    holder="host:1:abc", expires_at=self.now - seen + int(STREAM_SECONDS * SECOND),
                    started_at=self.now - 9 * MINUTE, ended_at=None if state == "running" else self.now - SECOND,
                    error=error, result=canonical_json(facts), context=canonical_json(STREAMED_BY),
                )
            )  # fmt: skip

    def _change(self, generation: int, txid: int, **values: object) -> None:
        with self.ledger.database.write("made") as connection:
            connection.execute(
                batches.update().where(batches.c.generation == generation, batches.c.txid == txid).values(**values)
            )

    def reconcile(
        self,
        generation: int,
        pipeline: str,
        made: Callable[[], Reconciliation] = results.equal,
        *,
        frontier: int = 0,
        ago: int = 30 * MINUTE,
        sealed: bool = False,
    ) -> int:
        """A reconciliation that has ended; returns its id."""
        found = self.ledger.generations.get(generation)
        at = frontier or found.frontier
        with self.ledger.database.write("made") as connection:
            added = connection.execute(
                insert(runs).values(
                    generation=generation, kind="reconcile", frontier=at, scope="{}", definition_hash="h",
                    state="done", holder="h", expires_at=0, started_at=self.now - ago - 12 * SECOND,
                    ended_at=self.now - ago,
                )
            )  # fmt: skip
            assert added.inserted_primary_key is not None
            id = int(added.inserted_primary_key[0])
            result = replace(
                made(), id=str(id), pipeline=pipeline, generation=found.name, frontier=at, started_at=self.now - ago
            )
            connection.execute(runs.update().where(runs.c.id == id).values(result=canonical_json(to_dict(result))))
        if sealed:
            save(self.home, certificate(result, self.ledger.batches.get(generation, 1, min(at, 100)), None))
        return id


def _some(rows: Iterator[dict], many: int = 5_000) -> Iterator[list[dict]]:
    found: list[dict] = []
    for row in rows:
        found.append(row)
        if len(found) == many:
            yield found
            found = []
    if found:
        yield found
