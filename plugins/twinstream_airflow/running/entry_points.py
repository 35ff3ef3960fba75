"""Where the spark-submit entry points are."""

from __future__ import annotations

from pathlib import Path

import twinstream


def entry_point(command: str) -> Path:
    """The entry point of a command: in a checkout beside include, installed beside the engine."""
    engine = Path(twinstream.__file__).parent
    for folder in (engine.parents[1] / "spark_jobs", engine.parent / "spark_jobs"):
        if (folder / f"{command}.py").is_file():
            return folder / f"{command}.py"
    raise FileNotFoundError(f"There is no spark_jobs/{command}.py beside {engine}.")
