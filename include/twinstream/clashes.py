"""What is wrong with a definition only beside the others: folders that cannot be used by both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError
from twinstream.sources.base import Places

if TYPE_CHECKING:
    from twinstream.catalog import Catalog
    from twinstream.pipeline import Definition


def clashes(definition: Definition, catalog: Catalog, home: Path) -> Iterator[DefinitionError]:
    """Tables that overlap, and tables below a source's folder, where they would be taken for new records."""
    places = Places(home)
    table = places.resolve(definition.pipeline.table)
    for other in catalog.definitions.values():
        its_table = places.resolve(other.pipeline.table)
        if other.name != definition.name and _overlap(table, its_table):
            yield DefinitionError(
                f"{definition.name} and {other.name} keep their tables in folders that overlap ({table}, {its_table}).",
                next_step="Give each pipeline's sink a path of its own.",
            )
    source = getattr(definition.pipeline.source, "path", None)
    if source is None:
        return
    folder = places.resolve(source)
    for other in catalog.definitions.values():
        its_table = places.resolve(other.pipeline.table)
        if _overlap(folder, its_table):
            yield DefinitionError(
                f"The source folder of {definition.name}, {folder}, overlaps with the table of {other.name}, "
                f"{its_table}: the table's files would be read as new records.",
                next_step="Keep sources and tables in folders apart.",
            )


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents
