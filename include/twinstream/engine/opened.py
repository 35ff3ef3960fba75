"""What every request to the engine begins with: ledger and Spark, and the generation of a pipeline with its table."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinstream.catalog import Catalog, load_catalog
from twinstream.errors import DefinitionChanged, Refused
from twinstream.ledger import Generation, Ledger
from twinstream.pipeline import Definition
from twinstream.runtime.ids.known import ID_COLUMNS
from twinstream.runtime.recover import compare
from twinstream.settings import Settings
from twinstream.sinks.base import mismatch
from twinstream.sinks.delta import DeltaStore
from twinstream.sources.base import Places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Opened:
    """Opens what is needed when it is needed: the ledger at first use, Spark only when there is work for it."""

    def __init__(self, settings: Settings, spark: SparkSession | None = None) -> None:
        self.settings = settings
        self._spark = spark
        self._own_spark = spark is None

    @cached_property
    def catalog(self) -> Catalog:
        return load_catalog(self.settings.pipelines)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger.open(self.settings.ledger_url)

    def spark(self) -> SparkSession:
        if self._spark is None:
            from twinstream.spark import open_session

            self._spark = open_session(self.settings, "engine")
        return self._spark

    def close(self) -> None:
        """Stops what this engine started; a Spark that is gone already needs no stopping."""
        if self._spark is not None and self._own_spark:
            with suppress(Exception):
                self._spark.stop()
            self._spark = None
        if "ledger" in self.__dict__:
            self.ledger.close()

    def definition(self, name: str) -> Definition:
        return self.catalog.get(name)

    def places(self, definition: Definition) -> Places:
        return self.settings.places(definition.name)

    def columns(self, definition: Definition) -> dict[str, str]:
        return definition.columns(self.spark() if definition.needs_spark() else None)

    def generation(self, definition: Definition, *, create: bool = False) -> Generation:
        """The current generation; refuses to go on under a definition that gives other results."""
        found = self.ledger.generations.current(definition.name)
        if found is None:
            if not create:
                raise Refused(
                    f"{definition.name} has not been run yet.", next_step=f"Run `twinstream drain {definition.name}`."
                )
            self._refuse_unknown_tables(definition)
            found = self.ledger.generations.open(definition.name, definition.hash, definition.text)
        if found.definition_hash != definition.hash:
            raise DefinitionChanged(
                f"The definition of {definition.name} has changed in a way that changes results "
                f"(generation {found.number} has {found.definition_hash[:8]}, now it is {definition.hash[:8]}).",
                next_step=f"Undo the change, or build a new generation with `twinstream replay {definition.name}`.",
            )
        return found

    def any_generation(self, definition: Definition) -> Generation:
        """The current generation, also if the definition has changed since."""
        found = self.ledger.generations.current(definition.name)
        return self.generation(definition) if found is None else found

    def published(self, definition: Definition) -> Path:
        """The plain table for other engines."""
        return self.places(definition).resolve(definition.pipeline.table)

    def tables(self, definition: Definition) -> Path:
        """The folder with a table for each generation."""
        return self.published(definition) / "_twinstream"

    def table(self, definition: Definition, generation: Generation) -> DeltaStore:
        """The generation's table, there or not, to be read."""
        return DeltaStore(self.tables(definition) / generation.name, generation.name, {})

    def store(self, definition: Definition, generation: Generation) -> DeltaStore:
        """The generation's table, to be created where it is not there yet."""
        from twinstream.runtime.process import stored_columns

        table = self.table(definition, generation)
        if table.exists():
            return table
        ids = ID_COLUMNS if definition.pipeline.deduplicate else {}
        return DeltaStore(table.folder, generation.name, stored_columns(definition, self.columns(definition)) | ids)

    def require_agreement(self, definition: Definition, generation: Generation) -> None:
        """Before anything is read or written: a table that was rolled back or a ledger that is too old is no base."""
        table = self.table(definition, generation)
        if generation.frontier or table.exists():
            compare(self.ledger, table, generation.id)

    def _refuse_unknown_tables(self, definition: Definition) -> None:
        """A table without a ledger that knows it is somebody's result: never start over beside it in silence."""
        known = {generation.name for generation in self.ledger.generations.of(definition.name)}
        folder = self.tables(definition)
        found = sorted(path.name for path in folder.glob("g*-*") if path.name not in known) if folder.is_dir() else []
        if found:
            raise mismatch(
                f"{folder} holds generation {found[-1]} of {definition.name}, which this ledger does not know "
                "(a new or wrong TWINSTREAM_LEDGER_URL?)"
            )
