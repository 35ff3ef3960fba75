"""A disk that really is full while a drain stages: nothing is committed by halves, and the next run goes on."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import commands_on
from tests.e2e.events import EACH, write_files
from tests.e2e.home import Home, assert_true

DRAIN = ("drain", "page_views", "--batch-records", str(EACH), "--group", "1", "--wait", "60")
Disk = Callable[[Path, str], None]


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Puts a folder on a small disk of its own, or makes that disk larger."""
    with ExitStack() as mounted:

        def mount(folder: Path, size: str) -> None:
            again = folder.is_mount()
            options = f"remount,size={size}" if again else f"size={size}"
            folder.mkdir(parents=True, exist_ok=True)
            command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no right to mount a small disk here: {done.stderr.strip()}")
            if not again:
                mounted.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)

        yield mount


@pytest.mark.parametrize("full", ["tables", "everything"])
def test_a_full_disk_while_staging_loses_nothing(
    full: str,
    disk: Disk,
    tmp_path: Path,
    spark: Any,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "home"
    small = folder if full == "everything" else folder / "tables"
    disk(small, "2m")
    home = Home.make(folder, spark)
    (tmp_path / "data").mkdir()
    (folder / "data").symlink_to(tmp_path / "data")
    paths = write_files(home)
    chance = random.Random(seed)
    with paths[1].open("a") as file:
        file.writelines(f"{chance.randbytes(500).hex()}\n" for _ in range(3_000))
    commands = commands_on(home, monkeypatch, capsys)
    monkeypatch.setenv("TWINSTREAM_GROUPS_IN_FLIGHT", "1")
    # A ledger without room cannot note that the lease is given back: it runs out.
    monkeypatch.setenv("TWINSTREAM_LEASE_SECONDS", "5")

    error = commands.bad(*DRAIN, kind="DiskFull or LedgerFull")
    assert "no room" in error["what"]
    assert "Make room" in error["next_step"]

    disk(small, "30m")
    assert home.accounting("page_views").keys() == {1}
    assert staged(home) == set()
    commands.good(*DRAIN)
    assert_true(home, "page_views", "side")
    assert home.accounting("page_views")[2]["dead"] == 3_000
    assert staged(home) == set()


def staged(home: Home) -> set[str]:
    """Staging folders that the table names no file of."""
    engine = home.engine()
    definition = engine.definition("page_views")
    store = engine.store(definition, engine.generation(definition))
    named = {"/".join(Path(file.path).parts[:2]) for file in store.snapshot().all_files()}
    there = {f"_data/{found.name}" for found in (store.folder / "_data").iterdir()}
    return there - named
