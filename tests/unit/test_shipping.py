"""The engine as one file for executors."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from twinstream.shipping import PACKAGE, engine_zip


def test_the_zip_is_made_once_per_content(tmp_path: Path) -> None:
    made = engine_zip(tmp_path)
    written = made.stat().st_mtime_ns
    assert engine_zip(tmp_path) == made
    assert made.stat().st_mtime_ns == written
    assert [file.name for file in tmp_path.iterdir()] == [made.name]
    assert engine_zip(tmp_path / "elsewhere").read_bytes() == made.read_bytes()


def test_it_holds_the_whole_engine_and_nothing_that_python_left_behind(tmp_path: Path) -> None:
    names = set(zipfile.ZipFile(engine_zip(tmp_path)).namelist())
    assert {f"twinstream/{file.relative_to(PACKAGE).as_posix()}" for file in PACKAGE.rglob("*.py")} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_a_python_that_has_it_on_its_path_takes_the_engine_from_there(tmp_path: Path) -> None:
    made = engine_zip(tmp_path)
    program = "import twinstream.operators, twinstream.runtime.rate, twinstream; print(twinstream.__file__)"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(made)!r}); {program}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert found.strip() == f"{made}/twinstream/__init__.py"
