"""The wheel: what pip installs registers itself with Airflow exactly once, and brings all that a task needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.airflow.definitions import ROOT

PARTS = ("include", "plugins", "spark_jobs", "pyproject.toml", "README.md", "LICENSE")
TWO_LINES = "from twinstream_airflow.dags.build import all_dags\n\nglobals().update(all_dags())\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content, as pip would unpack it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    leave_out = shutil.ignore_patterns("__pycache__")
    for name in PARTS:
        path = ROOT / name
        shutil.copytree(path, source / name, ignore=leave_out) if path.is_dir() else shutil.copy(path, source / name)
    builder = folder / "builder"
    subprocess.run([sys.executable, "-m", "venv", str(builder)], check=True)
    command = [
        str(builder / "bin" / "python"),
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("twinstream-*.whl")
    target = folder / "site"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(target)
    return target


def plugins_of(installed: Path, tmp_path: Path, plugins_folder: Path) -> tuple[list[str], str]:
    """The plugins that Airflow lists, and what it said besides."""
    done = subprocess.run(
        [sys.executable, "-m", "airflow", "plugins", "--output", "json"],
        env={
            **os.environ,
            "PYTHONPATH": str(installed),
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins_folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    start = done.stdout.index("[{")
    listed = json.loads(done.stdout[start:])
    return [plugin["name"] for plugin in listed], done.stdout[:start] + done.stderr


@pytest.mark.parametrize("also_in_the_folder", [False, True])
def test_the_plugin_is_registered_once_wherever_else_it_is(
    installed: Path, tmp_path: Path, also_in_the_folder: bool
) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    names, said = plugins_of(installed, tmp_path, ROOT / "plugins" if also_in_the_folder else folder)
    assert names.count("twinstream") == 1
    assert "already registered" not in said
    assert "Failed to import plugin" not in said


def test_two_lines_of_a_dag_file_give_all_dags_and_spark_finds_its_entry_points(
    installed: Path, tmp_path: Path
) -> None:
    pipelines = tmp_path / "pipelines"
    shutil.copytree(ROOT / "include" / "pipelines", pipelines)
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "twinstream.dags.py").write_text(f"# airflow dag\n{TWO_LINES}")
    script = (
        "import json, sys\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        f"bag = DagBag({str(dags)!r})\n"
        "import twinstream\n"
        "from twinstream_airflow.running.entry_points import entry_point\n"
        "print(json.dumps([sorted(bag.dags), bag.import_errors, twinstream.__file__, str(entry_point('drain'))]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "PYTHONPATH": str(installed),
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "TWINSTREAM_PIPELINES": str(pipelines),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, errors, engine, entry = json.loads(done.stdout.splitlines()[-1])
    assert errors == {}
    assert {"page_views__microbatch", "orders__repair", "twinstream__maintenance"} <= set(found)
    assert engine.startswith(str(installed))
    assert entry == str(installed / "spark_jobs" / "drain.py")
