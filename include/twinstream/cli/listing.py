"""`twinstream list`: every definition, and where it stands."""

from __future__ import annotations

from typing import Any

from twinstream.cli.output import AsJson, describe, emit, grid, number, out, say
from twinstream.cli.standing import existing_ledger
from twinstream.errors import LedgerError
from twinstream.settings import Settings

MODE = "micro-batch"
_HEADER = ("pipeline", "mode", "guarantee", "source", "sink", "generation", "frontier")


def list_pipelines(as_json: AsJson = False) -> None:
    """Show all pipelines: mode, guarantee, source, sink, and how far they are."""
    from twinstream.catalog import load_catalog

    settings = Settings.from_env()
    catalog = load_catalog(settings.pipelines)
    standings, problem = _standings(settings.ledger_url, list(catalog.definitions))
    data = {
        "folder": str(catalog.folder),
        "pipelines": [
            {
                "pipeline": name,
                "mode": MODE,
                "guarantee": definition.guarantee.delivery.text,
                "source": _place(definition.pipeline.source),
                "sink": _place(definition.pipeline.sink),
                "file": str(definition.file),
                "definition": definition.hash,
                **standings[name],
                "definition_changed": standings[name]["built_with"] not in (None, definition.hash),
            }
            for name, definition in catalog.definitions.items()
        ],
        "broken": [{"file": str(broken.file), "error": describe(broken.error)} for broken in catalog.broken],
        "ledger_error": describe(problem) if problem else None,
    }
    emit(data, as_json, lambda: _show(data))


def _standings(url: str, names: list[str]) -> tuple[dict[str, dict[str, Any]], LedgerError | None]:
    """What the ledger knows of each pipeline; a ledger that cannot be read does not keep the list from being shown."""
    found: dict[str, dict[str, Any]] = {name: _standing(None) for name in names}
    try:
        with existing_ledger(url) as ledger:
            if ledger is not None:
                found = {name: _standing(ledger.generations.current(name)) for name in names}
    except LedgerError as error:
        return found, error
    return found, None


def _standing(generation: Any) -> dict[str, Any]:
    if generation is None:
        return {"generation": None, "frontier": None, "planned": None, "built_with": None}
    return {
        "generation": generation.number,
        "frontier": generation.frontier,
        "planned": generation.last_txid,
        "built_with": generation.definition_hash,
    }


def _place(part: Any) -> str:
    """Kind and place of a source or sink, as `files:data/orders`."""
    path = getattr(part, "place", "") or getattr(part, "path", "")
    return f"{part.kind}:{path}" if path else str(part.kind)


def _show(data: dict[str, Any]) -> None:
    if data["pipelines"]:
        grid([_HEADER, *(_row(entry) for entry in data["pipelines"])], ["bold", *[""] * len(data["pipelines"])])
    else:
        say(f"No pipelines in {data['folder']}. `twinstream new NAME` starts one.")
    if data["broken"]:
        out.print(f"\nbroken ({len(data['broken'])}):", style="bold red", markup=False)
        for broken in data["broken"]:
            out.print(f"  {broken['error']['what']}", markup=False, soft_wrap=True)
            if broken["error"]["next_step"]:
                out.print(f"    {broken['error']['next_step']}", markup=False, soft_wrap=True)
    if data["ledger_error"]:
        say(f"The ledger could not be read: {data['ledger_error']['what']}")


def _row(entry: dict[str, Any]) -> list[str]:
    frontier = "–"
    if entry["generation"] is not None:
        frontier = f"txid {number(entry['frontier'])} of {number(entry['planned'])}"
    changed = " (definition changed)" if entry["definition_changed"] else ""
    return [
        entry["pipeline"],
        entry["mode"],
        entry["guarantee"],
        entry["source"],
        entry["sink"],
        f"{entry['generation'] or '–'}{changed}",
        frontier,
    ]
