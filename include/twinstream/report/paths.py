"""Where reports are kept; a name never leads out of that folder."""

from __future__ import annotations

import re
from pathlib import Path

from twinstream.errors import DefinitionError, ReportError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")


def report_path(home: Path, pipeline: str, id: str, suffix: str = "html") -> Path:
    """The file of one report: `reports/<pipeline>/<id>.html` under the home, and nowhere else."""
    from twinstream.pipeline import check_name

    try:
        check_name(pipeline)
    except DefinitionError as error:
        raise _refused(pipeline) from error
    if not isinstance(id, str) or not _ID.match(id):
        raise _refused(id)
    if suffix not in ("html", "json", "txt"):
        raise _refused(suffix)
    folder = home / "reports"
    path = folder / pipeline / f"{id}.{suffix}"
    if not path.resolve().is_relative_to(folder.resolve()):
        raise _refused(f"{pipeline}/{id}")
    return path


def _refused(name: object) -> ReportError:
    return ReportError(
        f"{name!r} cannot name a report.",
        untouched="No file was read or written.",
        next_step="Names have letters, digits, dashes and underscores only.",
    )
