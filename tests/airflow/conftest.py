"""An Airflow home that nobody else uses, before anything of Airflow is imported."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.definitions import ROOT

HOME = Path(tempfile.mkdtemp(prefix="twinstream-airflow-"))
os.environ["AIRFLOW_HOME"] = str(HOME)
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"


@pytest.fixture(scope="session", autouse=True)
def airflow_home() -> Iterator[Path]:
    yield HOME
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture
def pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of definitions of its own, with the two examples in it."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    for file in (ROOT / "include" / "pipelines").glob("*.py"):
        (folder / file.name).write_text(file.read_text())
    monkeypatch.setenv("TWINSTREAM_PIPELINES", str(folder))
    monkeypatch.setenv("TWINSTREAM_HOME", str(tmp_path / "home"))
    return folder
