"""`twinstream lint`: is a definition sound, and what does it guarantee?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinstream.cli.output import AsJson, describe, emit, out, say
from twinstream.cli.session import engine
from twinstream.errors import DefinitionError, Refused, TwinstreamError

if TYPE_CHECKING:
    from twinstream.catalog import Catalog
    from twinstream.engine import Engine
    from twinstream.guarantees import Part
    from twinstream.pipeline import Definition

Name = Annotated[str | None, typer.Argument(metavar="PIPELINE", help="Name of the pipeline (default: all).")]
BySpark = Annotated[
    bool, typer.Option("--spark", help="Let Spark analyse prepare even where its columns are known without.")
]


def lint(pipeline: Name = None, by_spark: BySpark = False, as_json: AsJson = False) -> None:
    """Check one definition, or all: columns, types, determinism, guarantee."""
    with engine() as opened:
        sound, broken = _chosen(opened.catalog, pipeline)
        entries = []
        for definition in sound:
            try:
                entries.append(_checked(opened, definition, by_spark))
            except TwinstreamError as error:
                broken.append(_broken(definition.file, definition.name, error))
    data = {"ok": not broken, "pipelines": entries, "broken": broken}
    emit(data, as_json, lambda: _show(data))
    if broken:
        raise typer.Exit(2)


def _chosen(catalog: Catalog, name: str | None) -> tuple[list[Definition], list[dict[str, Any]]]:
    """The definitions to check, and the files that are known to be broken."""
    broken = [_broken(entry.file, entry.file.stem, entry.error) for entry in catalog.broken]
    if name is None:
        return list(catalog.definitions.values()), broken
    if name in catalog.definitions:
        return [catalog.definitions[name]], []
    mine = [entry for entry in broken if entry["pipeline"] == name]
    return ([], mine) if mine else ([catalog.get(name)], [])


def _broken(file: Path, name: str, error: TwinstreamError) -> dict[str, Any]:
    return {"pipeline": name, "file": str(file), "error": describe(error)}


def _checked(opened: Engine, definition: Definition, by_spark: bool) -> dict[str, Any]:
    from twinstream.clashes import clashes

    for problem in clashes(definition, opened.catalog, opened.settings.home):
        raise problem
    asked_spark = by_spark or definition.needs_spark()
    columns = _by_spark(opened, definition) if asked_spark else definition.columns()
    guarantee = definition.guarantee
    return {
        "pipeline": definition.name,
        "file": str(definition.file),
        "definition": definition.hash,
        "guarantee": {
            "delivery": guarantee.delivery.text,
            "weakest": _part(guarantee.weakest),
            "parts": [_part(part) for part in guarantee.parts],
        },
        "real_time": _real_time(definition),
        "columns": columns,
        "result": definition.pipeline.operator.result_columns(columns),
        "checked_by": "spark" if asked_spark else "definition",
        "warnings": _warnings(definition),
    }


def _by_spark(opened: Engine, definition: Definition) -> dict[str, str]:
    """The columns as Spark sees them, which must be those that the definition was loaded with, as far as it knew."""
    columns = definition.columns_by_spark(opened.spark())
    for name, kind in (definition.prepared.output or {}).items():
        if kind is not None and columns.get(name) != kind:
            raise DefinitionError(
                f"{definition.name}: prepare's column {name!r} is {kind} by its text, but Spark makes it "
                f"{columns.get(name, 'no column')}.",
                next_step="Cast it to the type that you mean.",
            )
    return columns


def _real_time(definition: Definition) -> dict[str, str] | None:
    """What real-time mode would deliver; None where it cannot serve the pipeline."""
    from twinstream.guarantees import REAL_TIME
    from twinstream.runtime.realtime import require_served

    try:
        require_served(definition.pipeline)
    except Refused:
        return None
    return _part(REAL_TIME)


def _part(part: Part) -> dict[str, str]:
    return {"part": part.part, "delivery": part.delivery.text, "reason": part.reason}


def _warnings(definition: Definition) -> list[str]:
    if definition.file.stem == definition.name:
        return []
    return [f"The file is {definition.file.name}; name it {definition.name}.py, so that it is found by its name."]


def _show(data: dict[str, Any]) -> None:
    for entry in data["pipelines"]:
        guarantee = entry["guarantee"]
        _line(f"{entry['pipeline']}: ok, {guarantee['delivery']} end to end", "bold green")
        for part in guarantee["parts"]:
            _line(f"  {part['part']:<9} {part['delivery']:<13} {part['reason']}")
        if entry["real_time"]:
            _line(f"  real-time {entry['real_time']['delivery']:<13} {entry['real_time']['reason']}")
        weakest = guarantee["weakest"]
        if any(part["delivery"] != weakest["delivery"] for part in guarantee["parts"]):
            _line(f"  weakest   {weakest['part']}, which decides")
        else:
            _line("  weakest   none: every part delivers the same")
        _line(f"  result    {', '.join(f'{name} {kind}' for name, kind in entry['result'].items())}")
        for warning in entry["warnings"]:
            _line(f"  warning   {warning}", "yellow")
    for entry in data["broken"]:
        _line(f"{entry['pipeline']}: broken", "bold red")
        for text in (entry["error"]["what"], entry["error"]["next_step"]):
            if text:
                _line(f"  {text}")
    if not data["pipelines"] and not data["broken"]:
        say("There is nothing to check. `twinstream new NAME` starts a pipeline.")


def _line(text: str, style: str = "") -> None:
    out.print(text, style=style or None, markup=False, soft_wrap=True)
