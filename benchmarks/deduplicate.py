"""What deduplication costs: the same drain without it and with it, in one run on the same events.

The ids of earlier records are not drained: they are written as id files of the first txid, as a drain would have left
them (random ids and hashes, so that nothing of them comes again), and the filter is made from these files by the engine
before anything is measured. In the third and fourth way one event in a hundred has its id in them; in the third the
txid before had a duplicate, so that some are expected. All events are one group, as they are by themselves where a
group may take a minute.

    .venv/bin/python benchmarks/deduplicate.py [--events 5000000] [--txids 50] [--known 100000000] [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.lib.home import generate_events, open_spark, say, scratch, settings_of
from benchmarks.lib.results import keep
from benchmarks.lib.workload import FILES, write_definition

PER_FILE = 5_000_000
START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = {
    "without": "without deduplication",
    "none": "with it, nothing comes again",
    "some": "with it, one event in a hundred comes again, as before",
    "first": "with it, one event in a hundred comes again, for the first time",
}


def main() -> None:
    """Prepares the homes, drains each in turn, and reports."""
    arguments = _arguments()
    per_txid = arguments.events // arguments.txids
    home = scratch("deduplicate") / f"{arguments.events}-{arguments.txids}-{arguments.known}"
    events = _generate(home / "events", arguments.events, per_txid)
    spark = open_spark(home)
    built = _prepare(spark, home, events, per_txid, arguments.known)
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    duplicates: dict[str, int] = {}
    for name in NAMES:
        _drain(spark, _fresh(home, name, events[:3]))
    for _ in range(arguments.repeat):
        for name in NAMES:
            run = _fresh(home, name, events[1:])
            started = time.monotonic()
            duplicates[name] = _drain(spark, run)
            times[name].append(time.monotonic() - started)
            say(NAMES[name], times[name][-1])
    spark.stop()
    _report({name: statistics.median(found) for name, found in times.items()}, duplicates, built, arguments)


def _prepare(spark, home: Path, events: list[Path], per_txid: int, known: int) -> dict[str, float]:
    """A home for every way in which the first, small txid is drained; where ids are known, they are its own."""
    note = home / "prepared.json"
    if note.exists():
        return json.loads(note.read_text())
    built = {}
    for name in NAMES:
        folder = home / name
        shutil.rmtree(folder, ignore_errors=True)
        deduplicate = "None" if name == "without" else 'Deduplicate(horizon="30 days")'
        write_definition(folder, "bench", FILES, per_txid, deduplicate)
        (folder / "data").mkdir()
        if name == "some":
            lines = events[0].read_text().splitlines(keepends=True)
            (folder / "data" / events[0].name).write_text("".join([*lines, lines[0]]))
        else:
            os.link(events[0], folder / "data" / events[0].name)
        _drain(spark, folder)
        if name == "without":
            continue
        some = _known_again(events[1:]) if name in ("some", "first") else []
        started = time.monotonic()
        size = _know(next((folder / "tables" / "bench" / "_twinstream").iterdir()), known, some)
        built = {"seconds": time.monotonic() - started, "megabytes": size / 1e6}
    note.write_text(json.dumps(built))
    return built


def _know(table: Path, known: int, some: list[tuple[str, int]]) -> int:
    """Writes the id files and the filter; returns the filter's size in bytes."""
    import numpy as np

    from twinstream.runtime.ids.known import KnownIds
    from twinstream.sinks.delta import DeltaStore

    say(f"Writing {known:,} ids …")
    store = DeltaStore(table, table.name, {})
    files = [_id_file(table, ids) for ids in _ids(known, some)]
    store.replace({}, files, {"known": 1})
    KnownIds(table).find(np.zeros(1, np.uint64), 2, -(2**62), 2**62)
    return sum(file.stat().st_size for file in (table / "_ids").rglob("words.npy"))


def _ids(known: int, some: list[tuple[str, int]]) -> Iterator[dict]:
    """Columns of id files: random ids of 32 letters, as numbers from a generator are, and those that come again."""
    import numpy as np
    import pyarrow as pa
    import xxhash

    chance = np.random.default_rng(7)
    for start in range(0, known, PER_FILE):
        rows = min(PER_FILE, known - start)
        letters = pa.py_buffer(chance.bytes(16 * rows).hex().encode())
        offsets = pa.py_buffer(np.arange(0, 32 * rows + 1, 32, dtype=np.int32))
        yield {
            "_record_id": pa.StringArray.from_buffers(rows, offsets, letters),
            "_event_micros": pa.array(int(START.timestamp() * 1e6) + chance.integers(0, 86_400_000_000, rows)),
            "_id_hash": pa.array(chance.integers(-(2**63), 2**63, rows)),
        }
    if some:
        hashes = [xxhash.xxh64_intdigest(text.encode(), seed=42) for text, _ in some]
        yield {
            "_record_id": pa.array([text for text, _ in some]),
            "_event_micros": pa.array([at for _, at in some]),
            "_id_hash": pa.array(np.array(hashes, np.uint64).view(np.int64)),
        }


def _id_file(table: Path, columns: dict):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinstream.transaction import StagedFile

    rows = len(columns["_id_hash"])
    folder = table / "_data" / "known" / "_kind=ids"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    columns = {"_txid": pa.array(np.ones(rows, np.int64)), **columns}
    pq.write_table(pa.table(columns), path, use_dictionary=False, compression="snappy")
    return StagedFile("ids", path.relative_to(table).as_posix(), path.stat().st_size, rows, 1, 1)


def _known_again(files: list[Path]) -> list[tuple[str, int]]:
    """Id and time of one event in a hundred."""
    found = []
    for file in files:
        for number, line in enumerate(file.open()):
            if number % 100 == 0:
                event = json.loads(line)
                at = datetime.fromisoformat(event["at"])
                found.append((event["event_id"], round(at.timestamp() * 1e6)))
    return found


def _fresh(home: Path, name: str, more: list[Path]) -> Path:
    """A copy of a prepared home, with more events than its first file."""
    run = home / "run"
    shutil.rmtree(run, ignore_errors=True)
    large = (".parquet", ".npy", ".json")
    shutil.copytree(
        home / name, run, copy_function=lambda a, b: os.link(a, b) if a.endswith(large) else shutil.copy2(a, b)
    )
    for file in more:
        if not (run / "data" / file.name).exists():
            os.link(file, run / "data" / file.name)
    return run


def _drain(spark, home: Path) -> int:
    from twinstream.engine import DrainRequest, Engine

    engine = Engine(settings_of(home), spark)
    drained = engine.drain("bench", DrainRequest(group=1_000_000))
    engine.close()
    return drained.duplicate


def _generate(folder: Path, events: int, per_txid: int) -> list[Path]:
    """A small first file, then the events."""
    if not folder.is_dir():
        for name, count, seed in (("1", per_txid // 100, 1), ("2", events, 7)):
            generate_events(folder / name, count, per_txid, seed, START)
            for file in (folder / name).glob("*.json"):
                file.rename(folder / f"{name}-{file.name}")
    return sorted(folder.glob("*.json"))


def _report(
    seconds: dict[str, float], duplicates: dict[str, int], built: dict[str, float], arguments: argparse.Namespace
) -> None:
    base = seconds["without"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = [
        f"{arguments.events:,} JSON events in {arguments.txids} txids, {arguments.known:,} ids within the horizon, "
        f"driver heap 1 GB, median of {arguments.repeat}",
        "",
        "| way | duplicates | seconds | against the drain without |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {NAMES[name]} | {duplicates[name]:,} | {value:.1f} | {value / base:.2f} × |"
            for name, value in seconds.items()
        ),
        "",
        f"The filter takes {built['megabytes']:,.0f} MB, mapped beside the heap; the driver's Python had at most "
        f"{memory:,.0f} MB resident, mapped pages included. The ids were written as files and their filter made from "
        f"these in {built['seconds']:.0f} s before.",
    ]
    text = "\n".join(lines)
    print(text)
    if arguments.known >= 100_000_000:
        keep("deduplicate", text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--txids", type=int, default=50)
    parser.add_argument("--known", type=int, default=100_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
