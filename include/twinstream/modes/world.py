"""A world of its own for every measurement: the same definition with another home, ledger, result and topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.catalog import Catalog, load_catalog
from twinstream.engine import Engine
from twinstream.pipeline import Definition, Pipeline, check
from twinstream.settings import Settings
from twinstream.sinks.delta import DeltaSink
from twinstream.sources.files import FileSource
from twinstream.sources.kafka.source import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class World:
    """Where a pipeline is run for a measurement; nothing of it is the pipeline's own."""

    name: str
    home: Path
    ledger: Path
    topics: Mapping[str, str]
    """What each topic of the source is called here."""
    batch_records: int | None = None

    def engine(self, settings: Settings, spark: SparkSession | None = None) -> Engine:
        """An engine that knows this pipeline only, as it is here."""
        definition = load_catalog(settings.pipelines).get(self.name)
        own = replace(settings, home=self.home, ledger_url=f"sqlite:///{self.ledger}")
        engine = Engine(own, spark=spark)
        changed = self._here(definition, settings)
        engine.catalog = Catalog(settings.pipelines, {self.name: changed}, ())
        return engine

    def _here(self, definition: Definition, settings: Settings) -> Definition:
        """Late records count as all others do: where batches end decides what is late, and they end elsewhere."""
        pipeline = definition.pipeline
        watermark = pipeline.watermark and replace(pipeline.watermark, late="keep")
        changed: Pipeline = replace(
            pipeline, source=self._source(pipeline.source, settings), sink=DeltaSink("result"), watermark=watermark,
            gate=None, batch_records=self.batch_records or pipeline.batch_records,
        )  # fmt: skip
        return check(changed, definition.file)

    def _source(self, source: Any, settings: Settings) -> Any:
        if isinstance(source, KafkaSource):
            return replace(source, topics=tuple(self.topics.values()), pattern="")
        assert isinstance(source, FileSource)
        return replace(source, path=str(settings.places(self.name).resolve(source.path)))
