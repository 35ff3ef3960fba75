"""What the ledger costs when it is long: planning and committing with 1,000 and with 1,000,000 txids in it.

The same steps on SQLite (synchronous=full, on this disk) and on PostgreSQL (a server of its own), turn by turn on the
short and on the long ledger, so that whatever else the machine does hits both. Then the listing of a nested folder in
which nearly all files are consumed, against a walk over all of it.

    .venv/bin/python benchmarks/ledger.py [--txids 1000000] [--rounds 60] [--files 100000]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, text, update

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "include")]

from tests.servers.postgres import postgres_database, postgres_server  # noqa: E402
from twinstream.ledger import Ledger, Planned  # noqa: E402
from twinstream.ledger.schema import attempts, batches, claims, folders, generations  # noqa: E402
from twinstream.runtime.plan import LedgerHistory  # noqa: E402
from twinstream.sources.base import Places  # noqa: E402
from twinstream.sources.files import FileSource  # noqa: E402
from twinstream.transaction import (  # noqa: E402
    Accounting,
    Attempt,
    Manifest,
    Range,
    Staged,
    StagedFile,
    Tally,
    TxidResult,
)

SCRATCH = ROOT / "benchmarks" / "scratch" / "ledger"
RESULTS = ROOT / "benchmarks" / "results"
GROUP = 10
PER_FOLDER = 1_000
CHUNK = 10_000
STEPS = ("look", "plan", "start", "processed", "committed")
SHORT = 1_000


def main() -> None:
    """Fills the ledgers, measures, reports."""
    arguments = _arguments()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    found: dict[str, dict[int, dict[str, float]]] = {}
    for kind, opened in (("SQLite", _sqlite), ("PostgreSQL", _postgres)):
        with opened(arguments.txids) as urls:
            found[kind] = _measure(kind, urls, arguments.rounds)
    listing = _listing(arguments.files)
    shutil.rmtree(SCRATCH)
    _report(found, listing, arguments)


@contextmanager
def _sqlite(txids: int) -> Iterator[dict[int, str]]:
    os.environ["TWINSTREAM_SQLITE_SYNCHRONOUS"] = "full"
    yield {size: f"sqlite:///{SCRATCH / f'{size}.db'}" for size in (SHORT, txids)}


@contextmanager
def _postgres(txids: int) -> Iterator[dict[int, str]]:
    with postgres_server() as server, postgres_database(server) as short, postgres_database(server) as long:
        yield {SHORT: short, txids: long}


def _measure(kind: str, urls: dict[int, str], rounds: int) -> dict[int, dict[str, float]]:
    """Medians in milliseconds, by size and step."""
    runners = {}
    for size, url in urls.items():
        started = time.monotonic()
        runners[size] = Runner(Ledger.open(url))
        runners[size].fill(size)
        print(f"{kind}: {size:,} txids loaded in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    for turn in range(rounds + 5):
        for runner in runners.values():
            runner.round(measured=turn >= 5)
    for size, runner in runners.items():
        assert runner.generation.frontier == runner.generation.last_txid == size + GROUP * (rounds + 5)
        runner.ledger.close()
    return {
        size: {step: statistics.median(runner.times[step]) * 1000 for step in STEPS} for size, runner in runners.items()
    }


@dataclass
class Runner:
    """One runner at work on one ledger."""

    ledger: Ledger
    times: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})

    def __post_init__(self) -> None:
        self.id = self.ledger.generations.open("bench", "hash", "{}").id
        self.lease = self.ledger.leases.acquire(self.id, "benchmark", 36_000.0)

    @property
    def generation(self) -> Any:
        return self.ledger.generations.get(self.id)

    def fill(self, size: int) -> None:
        """A first group by the ledger itself, then copies of its rows until there are `size` txids."""
        self.round(measured=False)
        with self.ledger.database.read() as connection:
            batch = dict(connection.execute(select(batches).where(batches.c.txid == 1)).one()._mapping)
            attempt = dict(connection.execute(select(attempts)).one()._mapping)
        del attempt["id"]
        for start in range(GROUP + 1, size + 1, CHUNK):
            txids = range(start, min(start + CHUNK, size + 1))
            with self.ledger.database.write("fill") as connection:
                connection.execute(insert(batches), [{**batch, "txid": txid} for txid in txids])
                connection.execute(
                    insert(claims),
                    [dict(zip(("folder", "name"), _place(t), strict=True), generation=self.id, txid=t) for t in txids],
                )
                connection.execute(
                    insert(attempts),
                    [{**attempt, "first_txid": t, "last_txid": t + GROUP - 1} for t in txids if t % GROUP == 1],
                )
                old = {_place(txid)[0] for txid in txids if txid % PER_FOLDER == 0 and txid > PER_FOLDER}
                if old:
                    connection.execute(
                        insert(folders),
                        [{"generation": self.id, "folder": name, "modified": 1} for name in sorted(old)],
                    )
        with self.ledger.database.write("fill") as connection:
            connection.execute(update(generations).values(last_txid=size, frontier=size))
        if self.ledger.database.dialect == "postgresql":
            # What autovacuum does by itself on a ledger that grows little by little.
            with self.ledger.database._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("vacuum analyze"))
                connection.execute(text("checkpoint"))

    def round(self, measured: bool) -> None:
        """Ten txids from the look whether there is anything to the COMMITTED mark."""
        marks = [time.perf_counter()]
        ledger, id_ = self.ledger, self.id
        self._look()
        marks.append(time.perf_counter())
        txids = self._plan()
        marks.append(time.perf_counter())
        attempt = ledger.attempts.start(self.lease, txids[0], txids[-1], f"_data/{txids[0]:016x}")
        marks.append(time.perf_counter())
        ledger.attempts.processed(self.lease, attempt, _staged(attempt))
        marks.append(time.perf_counter())
        manifests = [
            _manifest(attempt, batch.txid, batch.range, batch.batch_time)
            for batch in ledger.batches.get(id_, txids[0], txids[-1])
        ]
        ledger.attempts.committed(id_, manifests)
        marks.append(time.perf_counter())
        if measured:
            for step, (before, after) in zip(STEPS, pairwise(marks), strict=True):
                self.times[step].append(after - before)

    def _look(self) -> None:
        """What a drain asks before it knows whether there is anything to do."""
        assert self.ledger.generations.current("bench") is not None
        self.ledger.batches.backlog(self.id)
        self.ledger.batches.open(self.id, 2_000)
        self.ledger.attempts.to_clean(self.id)
        self.ledger.leases.renew(self.lease)

    def _plan(self) -> range:
        """All of a source's questions, then the plan; the folder that still grows is remembered anew."""
        generation = self.generation
        history = LedgerHistory(self.ledger, generation)
        history.last()
        history.known_folders()
        first = generation.last_txid + 1
        folder = _place(first)[0]
        history.claimed(folder)
        planned = [Planned(_range(txid)) for txid in range(first, first + GROUP)]
        return self.ledger.batches.plan(self.id, first - 1, planned, "hash", [(folder, first)])


def _place(txid: int) -> tuple[str, str]:
    """Folder and name of the file of a txid."""
    number = txid - 1
    return f"source/day={number // PER_FOLDER:05}", f"events-{number:010}.json"


def _range(txid: int) -> Range:
    path = "/".join(_place(txid)).removeprefix("source/")
    file = {"path": path, "size": 12_345_678, "records": 100_000, "fingerprint": f"{txid:032x}", "road": "fast"}
    return Range(
        payload={"place": "source", "files": [file]},
        records=100_000,
        size=12_345_678,
        claims=(f"source/{path}",),
        hints={path: [1_700_000_000_000_000_000 + txid, 1_700_000_000_000_000_000 + txid, txid]},
    )


def _result(txid: int) -> TxidResult:
    tally = Tally(100_000, 0x123456789ABCDEF0 + txid, 0x0FEDCBA987654321 ^ txid)
    return TxidResult(txid, Accounting(emitted=tally, rows_out=1_000), 10**15 + txid, 10**15, tally)


def _staged(attempt: Attempt) -> Staged:
    return Staged(
        files=(StagedFile("partial", f"{attempt.staging}/part-0.parquet", 10**6, 1_000, attempt.first, attempt.last),),
        results=tuple(_result(txid) for txid in range(attempt.first, attempt.last + 1)),
        seconds=1.0,
    )


def _manifest(attempt: Attempt, txid: int, range_: Range, batch_time: int) -> Manifest:
    result = _result(txid)
    return Manifest(
        txid=txid,
        attempt=attempt.id,
        epoch=attempt.epoch,
        range_digest=range_.digest,
        range=range_,
        batch_time=batch_time,
        highest_event_time=result.highest_event_time,
        watermark=10**15,
        late_before=None,
        accounting=result.accounting,
        digest=result.digest,
        definition_hash="hash",
        files=(f"{attempt.staging}/part-0.parquet",),
    )


def _listing(files: int) -> dict[str, float]:
    """Milliseconds to find out what is new among so many consumed files in folders of a thousand."""
    home = SCRATCH / "listing"
    for number in range(files):
        path = home / "in" / f"day={number // PER_FOLDER:05}" / f"events-{number:010}.json"
        if number % PER_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_text('{"id": "a"}\n')
    time.sleep(2.5)
    ledger = Ledger.open(f"sqlite:///{home / 'ledger.db'}")
    source, places = FileSource("in", schema="id string"), Places(home)
    generation = ledger.generations.open("bench", "hash", "{}")
    found = source.plan(places, LedgerHistory(ledger, generation), PER_FOLDER, 10**12)
    assert sum(range_.records for range_ in found.ranges) == files
    planned = [Planned(range_) for range_ in found.ranges]
    ledger.batches.plan(generation.id, 0, planned, "hash", found.seen_folders)

    def look(expected: int) -> None:
        history = LedgerHistory(ledger, ledger.generations.get(generation.id))
        again = source.plan(places, history, PER_FOLDER, 10**12)
        assert sum(range_.records for range_ in again.ranges) == expected

    def walk() -> None:
        with ledger.database.read() as connection:
            known = {f"{row.folder}/{row.name}" for row in connection.execute(select(claims.c.folder, claims.c.name))}
        names = (f"{folder}/{name}" for folder, _, names in os.walk(home / "in") for name in names)
        new = [name for name in names if f"source/{name.removeprefix(f'{home}/in/')}" not in known]
        assert len(new) == 10

    times = {"nothing new": _median(lambda: look(0))}
    for number in range(10):
        (home / "in" / "day=00000" / f"late-{number}.json").write_text('{"id": "a"}\n')
    times[f"10 of {files + 10:,} new"] = _median(lambda: look(10))
    times["the same by a walk over everything"] = _median(walk)
    ledger.close()
    return times


def _median(call: Callable[[], None], repeat: int = 15) -> float:
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def _report(
    found: dict[str, dict[int, dict[str, float]]], listing: dict[str, float], arguments: argparse.Namespace
) -> None:
    """The same tables for the terminal and for the repository, and a plot."""
    from rich.console import Console
    from rich.table import Table

    short, long = f"{SHORT:,} txids", f"{arguments.txids:,} txids"
    table = Table("database", "step, 10 txids", short, long, "ratio", title="The ledger, median milliseconds")
    lines = [f"| database | step, 10 txids | {short} | {long} | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    worst = 0.0
    for kind, sizes in found.items():
        few, many = sizes[SHORT], sizes[arguments.txids]
        for step in (*STEPS, "all"):
            before, after = (sum(times.values()) if step == "all" else times[step] for times in (few, many))
            worst = max(worst, after / before)
            cells = (kind, step, f"{before:.1f}", f"{after:.1f}", f"{after / before:.2f}")
            table.add_row(*cells, end_section=step == "all", style="bold" if step == "all" else "")
            lines.append(f"| {' | '.join(cells)} |")
    files = Table("listing", "milliseconds", title=f"{arguments.files:,} consumed files, {PER_FOLDER:,} a folder")
    lines += ["", f"| {arguments.files:,} consumed files, {PER_FOLDER:,} a folder | milliseconds |", "| --- | ---: |"]
    for what, milliseconds in listing.items():
        files.add_row(what, f"{milliseconds:.1f}")
        lines.append(f"| {what} | {milliseconds:.1f} |")
    console = Console()
    console.print(table, files)
    RESULTS.mkdir(parents=True, exist_ok=True)
    head = (
        f"Printed by `.venv/bin/python benchmarks/ledger.py --txids {arguments.txids} --rounds {arguments.rounds} "
        f"--files {arguments.files}`\non {os.cpu_count()} cores. Medians in milliseconds. SQLite: synchronous=full on "
        "a local disk. PostgreSQL: a server\nwithout fsync, so that the ledger's own work shows and not the disk's.\n"
    )
    (RESULTS / "ledger.md").write_text(head + "\n" + "\n".join(lines) + "\n")
    _plot(found, arguments.txids, RESULTS / "ledger.png")
    if worst > 2:
        console.print(f"[red]A step costs {worst:.2f} times as much on the long ledger; it may cost 2 times.")
        sys.exit(1)


def _plot(found: dict[str, dict[int, dict[str, float]]], txids: int, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(10, 4), sharey=True)
    for axis, (kind, sizes) in zip(axes, found.items(), strict=True):
        for offset, size in ((-0.2, SHORT), (0.2, txids)):
            places = [number + offset for number in range(len(STEPS))]
            axis.bar(places, [sizes[size][step] for step in STEPS], 0.4, label=f"{size:,} txids")
        axis.set_xticks(range(len(STEPS)), STEPS)
        axis.set_title(kind)
    axes[0].set_ylabel("milliseconds (median), 10 txids")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--txids", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--files", type=int, default=100_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
