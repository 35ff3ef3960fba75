"""One million events through the command line, for several batch and group sizes, against the truth in plain Python.

Too long for every run of the tests, so it is a command of its own:

    .venv/bin/python -m tests.e2e.million [--events 1000000] [--late side,keep] [--batches 1000,37000,1000000]
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import truth
from tests.e2e.home import ROOT, Home

BATCHES = (1_000, 37_000, 1_000_000)
GROUPS = (1, 7, None)
UNLIMITED = 1_000_000_000


def main() -> int:
    """Drains every combination; says for each whether rows and accounting are the truth."""
    arguments = _arguments()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="twinstream-million-"))
    source = folder / "source"
    home = Home.make(source, None)
    _twinstream(
        home, "generate", "page_views", "--events", str(arguments.events), "--late", "0.02", "--poison", "0.001",
        "--seed", "7", "--events-per-file", "1000",
    )  # fmt: skip
    wrong = 0
    for late in arguments.late.split(","):
        by_batch = set()
        for batch in map(int, arguments.batches.split(",")):
            expected = None
            by_group = set()
            for group in GROUPS if late == "side" else (None,):
                home = _copy(source, folder / f"{late}-{batch}-{group or 'unlimited'}", late)
                began = time.monotonic()
                _twinstream(
                    home, "drain", "page_views", "--batch-records", str(batch), "--group", str(group or UNLIMITED)
                )
                seconds = time.monotonic() - began
                text = _twinstream(home, "read", "page_views", "--format", "csv")
                rows = sorted(tuple(row) for row in list(csv.reader(io.StringIO(text)))[1:])
                expected = expected or truth.truth_page_views(home.ranges("page_views"), late)
                counted = {int(txid): dict(value) for txid, value in expected.per_txid.items()}
                right = rows == sorted(map(tuple, expected.rows)) and home.accounting("page_views") == counted
                wrong += not right
                by_group.add(_mark(rows))
                totals = {name: sum(one[name] for one in counted.values()) for name in truth.CLASSES}
                print(
                    f"late={late} batch {batch:>9,} group {group or 'unlimited':>9}: {len(counted):>5,} txids, "
                    f"{len(rows):,} rows, {totals}, drained in {seconds:.0f} s: {'the truth' if right else 'WRONG'}",
                    flush=True,
                )
                shutil.rmtree(home.folder)
            wrong += len(by_group) != 1
            by_batch |= by_group
        if late == "keep":
            wrong += len(by_batch) != 1
            print(f"late=keep: {len(by_batch)} result for all batch sizes", flush=True)
    if arguments.folder is None:
        shutil.rmtree(folder)
    return int(wrong > 0)


def _twinstream(home: Home, *arguments: str) -> str:
    environment = {"TWINSTREAM_HOME": str(home.folder), "TWINSTREAM_PIPELINES": str(home.pipelines)}
    command = [str(ROOT / "bin" / "twinstream"), *arguments]
    ran = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


def _copy(source: Path, folder: Path, late: str) -> Home:
    shutil.copytree(source, folder, copy_function=os.link)
    (folder / "pipelines" / "page_views.py").unlink()
    text = (source / "pipelines" / "page_views.py").read_text()
    (folder / "pipelines" / "page_views.py").write_text(text.replace('late="side"', f'late="{late}"'))
    return Home(folder, None, folder / "pipelines")


def _mark(rows: list[tuple[str, ...]]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--late", default="side,keep", help="What happens to late records.")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)), help="Batch sizes.")
    parser.add_argument("--folder", help="Where to work, and leave the source behind.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
