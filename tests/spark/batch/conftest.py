"""A stream that is drained once and copied for every test that damages it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.home import Home


@pytest.fixture(scope="package")
def drained(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Home:
    """Page views with late and broken records."""
    made = Home.make(tmp_path_factory.mktemp("drained") / "home", spark)
    made.generate("page_views", 600, events_per_file=100, late=0.1, poison=0.02, rate=0.5)
    made.drain("page_views", batch_records=200)
    return made


@pytest.fixture
def home(drained: Home, tmp_path: Path) -> Home:
    """A copy of it to be damaged."""
    shutil.copytree(drained.folder, tmp_path / "home")
    return Home(tmp_path / "home", drained.spark, tmp_path / "home" / "pipelines")
