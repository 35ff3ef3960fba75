"""Committing a group to a sink that has many live files already: what the commit costs beside the Spark job.

.venv/bin/python benchmarks/commit.py [--files 10000] [--commits 30]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "benchmarks" / "scratch" / "commit"
RESULTS = ROOT / "benchmarks" / "results"
COLUMNS = {"_txid": "bigint", "page": "string", "views": "bigint"}


def main() -> None:
    """Measures on an almost empty table and on one with many files."""
    arguments = _arguments()
    lines = [
        f"A group of one txid and one file, {arguments.commits} commits, synced to disk.",
        "",
        "| live files | median | slowest |",
        "| ---: | ---: | ---: |",
    ]
    for files in (10, arguments.files):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        times = _measure(files, arguments.commits)
        lines.append(f"| {files:,} | {statistics.median(times):.3f} s | {max(times):.3f} s |")
    shutil.rmtree(SCRATCH)
    text = "\n".join(lines)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "commit.md").write_text(text + "\n")


def _measure(files: int, commits: int) -> list[float]:
    from twinstream.sinks.base import GroupCommit
    from twinstream.sinks.delta import DeltaStore

    store = DeltaStore(SCRATCH / "table", "g1-bench", COLUMNS)
    store.create()
    store.fence(1)
    per_group = max(1, min(100, files // 2))
    txid = 0
    while txid < files // per_group:
        txid += 1
        store.commit(GroupCommit(1, (_manifest(txid),), tuple(_staged(store, txid) for _ in range(per_group))))
    store.checkpoint()
    times = []
    for _ in range(commits):
        txid += 1
        group = GroupCommit(1, (_manifest(txid),), (_staged(store, txid),))
        began = time.monotonic()
        store.commit(group)
        times.append(time.monotonic() - began)
    return times


def _staged(store, txid):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinstream.transaction import StagedFile

    target = store.folder / store.new_staging() / "part.parquet"
    target.parent.mkdir(parents=True)
    pq.write_table(pa.table({"_txid": [txid], "page": ["a"], "views": [1]}), target)
    path = target.relative_to(store.folder).as_posix()
    return StagedFile("partial", path, target.stat().st_size, 1, txid, txid)


def _manifest(txid):
    from twinstream.transaction import Accounting, Manifest, Range, Tally

    range_ = Range({"files": [f"{txid}.json"]}, records=1, size=1)
    return Manifest(
        txid=txid, attempt=txid, epoch=1, range_digest=range_.digest, range=range_, batch_time=0,
        highest_event_time=None, watermark=None, late_before=None, accounting=Accounting(), digest=Tally(),
        definition_hash="d",
    )  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=30)
    return parser.parse_args()


if __name__ == "__main__":
    main()
