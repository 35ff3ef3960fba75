"""A scratch home for end-to-end tests: definitions, data, engine and the truth beside it."""

from __future__ import annotations

import csv
import io
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import truth
from twinstream.engine import DrainRequest, Engine
from twinstream.settings import Settings
from twinstream.transaction import CLASSES

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Home:
    """One TWINSTREAM_HOME with the two example pipelines (or changed copies of them)."""

    folder: Path
    spark: Any
    pipelines: Path

    @classmethod
    def make(cls, folder: Path, spark: Any) -> Home:
        pipelines = folder / "pipelines"
        pipelines.mkdir(parents=True)
        for name in ("page_views", "orders"):
            (pipelines / f"{name}.py").write_text((ROOT / "include" / "pipelines" / f"{name}.py").read_text())
        return cls(folder, spark, pipelines)

    def change(self, name: str, old: str, new: str) -> None:
        file = self.pipelines / f"{name}.py"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    @property
    def settings(self) -> Settings:
        return Settings.from_env({"TWINSTREAM_HOME": str(self.folder), "TWINSTREAM_PIPELINES": str(self.pipelines)})

    def engine(self) -> Engine:
        return Engine(self.settings, self.spark)

    def data(self, name: str) -> Path:
        folder = self.folder / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def generate(self, name: str, events: int, **options: Any) -> None:
        from twinstream.generator import generate

        pipeline = self.engine().definition(name).pipeline
        generate(
            pipeline.source.columns, self.data(name), record_id=pipeline.record_id, event_time=pipeline.event_time,
            events=events, **{"seed": 7, **options},
        )  # fmt: skip

    def drain(self, name: str, **options: Any) -> Any:
        engine = self.engine()
        try:
            return engine.drain(name, DrainRequest(**{"wait_seconds": 0, **options}))
        finally:
            engine.close()

    def read(self, name: str, **options: Any) -> list[tuple[str, ...]]:
        """What `twinstream read --format csv` prints, sorted, without the header."""
        from twinstream.cli.results import print_rows

        text = io.StringIO()
        with redirect_stdout(text):
            print_rows(self.engine().read(name, **options), "csv", None)
        rows = list(csv.reader(io.StringIO(text.getvalue())))
        return sorted(tuple(row) for row in rows[1:])

    def ranges(self, name: str) -> list[dict[str, Any]]:
        """The txid ranges that the truth takes as its input."""
        engine = self.engine()
        definition = engine.definition(name)
        generation = engine.generation(definition)
        source: Any = definition.pipeline.source
        found = []
        for batch in engine.ledger.batches.get(generation.id, 1, generation.frontier):
            paths = [self._as_json(path) for _, path in source._paths(engine.places(definition), batch.range)]
            found.append(
                {
                    "txid": batch.txid,
                    "files": paths,
                    "batch_time": _iso(batch.batch_time),
                    "discarded": batch.discard_reason is not None,
                    "exempt": batch.exempt,
                }
            )
        return found

    def _as_json(self, path: Path) -> str:
        """The truth reads JSON: whoever writes another form writes the records to `as-json` as well."""
        name = f"{path.name.partition('.')[0]}.json"
        return str(self.folder / "as-json" / name if path.suffix in (".parquet", ".gz") else path)

    def deduplicate(self, name: str, horizon: str) -> None:
        """Lets the pipeline deduplicate within a horizon."""
        self.change(name, "    sink=", f'    deduplicate=Deduplicate("{horizon}"),\n    sink=')
        self.change(name, "import A", "import Deduplicate, A")

    def truth(self, name: str, late: str) -> Any:
        compute = truth.truth_page_views if name == "page_views" else truth.truth_orders
        deduplicate = self.engine().definition(name).pipeline.deduplicate
        return compute(self.ranges(name), late, deduplicate.horizon_micros if deduplicate else None)

    def accounting(self, name: str) -> dict[int, dict[str, int]]:
        engine = self.engine()
        generation = engine.generation(engine.definition(name))
        found = {}
        for batch in engine.ledger.batches.get(generation.id, 1, generation.frontier):
            counted = batch.accounting
            assert counted is not None
            found[batch.txid] = {"read": counted.read.count} | {n: getattr(counted, n).count for n in CLASSES}
        return found


def _iso(micros: int) -> str:
    from twinstream.runtime.status import moment

    return moment(micros) or ""


def assert_true(home: Home, name: str, late: str) -> None:
    """The result and the accounting are the truth, row by row and txid by txid."""
    expected = home.truth(name, late)
    assert home.read(name) == sorted(tuple(row) for row in expected.rows)
    counted = {int(txid): dict(value) for txid, value in expected.per_txid.items()}
    assert home.accounting(name) == counted
