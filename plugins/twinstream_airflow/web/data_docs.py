"""Great Expectations' pages of one pipeline: found by its name, and never outside of its folders."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from twinstream.ledger import Run
from twinstream.pipeline import check_name
from twinstream.quality.context import folder_of
from twinstream_airflow.web.models import Page

_FORM = "%Y%m%dT%H%M%S.%fZ"


def pages_of(home: Path, pipeline: str, run: Run) -> list[Page]:
    """The pages that this reconciliation left behind; none where they were deleted."""
    check_name(pipeline)
    site = folder_of(home) / "data_docs"
    found = []
    for file in sorted((site / "validations" / pipeline).glob(f"*/txid-{int(run.frontier)}/*/*.html")):
        at = _moment(file.parent.name)
        if at is not None and run.started_at <= at <= (run.ended_at or at):
            suite = file.relative_to(site / "validations" / pipeline).parts[0]
            found.append(Page(suite=suite.replace("_", " "), path=str(file.relative_to(site))))
    return found


def page_file(home: Path, pipeline: str, path: str) -> Path | None:
    """The file of a page of this pipeline; None for anything else, however it is spelled."""
    check_name(pipeline)
    site = folder_of(home) / "data_docs"
    file = (site / path).resolve()
    mine = [(site / section / pipeline).resolve() for section in ("validations", "expectations")]
    inside = any(file.is_relative_to(folder) for folder in mine)
    return file if inside and file.suffix == ".html" and file.is_file() else None


def _moment(name: str) -> int | None:
    try:
        return int(datetime.strptime(name, _FORM).replace(tzinfo=UTC).timestamp() * 1_000_000)
    except ValueError:
        return None
