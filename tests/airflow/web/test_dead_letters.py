"""Dead letters on the page of a txid, read from the table itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.airflow.web.conftest import Web
from tests.airflow.web.made import Made
from tests.unit.report.results import HOSTILE
from tests.unit.sinks.test_conformance import manifest
from twinstream.sinks.base import GroupCommit
from twinstream.sinks.delta import DeltaStore
from twinstream.transaction import StagedFile


def _letters(made: Made, generation: int, many: int) -> Path:
    """A table with dead letters of txids 1 and 2 in one file."""
    name = made.ledger.generations.get(generation).name
    folder = made.home / "tables" / "page_views" / "_twinstream" / name
    store = DeltaStore(folder, name, {})
    store.create()
    store.fence(1)
    file = folder / "_data" / "made" / "dead.parquet"
    file.parent.mkdir(parents=True)
    rows = [(1, HOSTILE)] * many + [(2, "of another txid")]
    letters = {
        "_txid": [txid for txid, _ in rows], "_raw": [f"{number}: {text}" for number, (_, text) in enumerate(rows)],
        "_reason": ["no JSON"] * len(rows), "_file": ["day/000001.json"] * len(rows), "_occurrences": [1] * len(rows),
    }  # fmt: skip
    pq.write_table(pa.table(letters), file)
    staged = StagedFile("dead", "_data/made/dead.parquet", file.stat().st_size, len(rows), 1, 2)
    assert store.commit(GroupCommit(1, (manifest(1), manifest(2)), (staged,)))
    return folder


def test_dead_letters_are_shown_capped_and_escaped_when_they_are_asked_for(made: Made, web: Web) -> None:
    generation = made.generation("page_views", made.define("page_views"), 4)
    _letters(made, generation, 33)
    client = web.as_user("viewer")
    found = client.get("api/pipelines/page_views/txids/1/dead").json()
    assert (found["total"], len(found["letters"]), found["masked"]) == (33, 20, False)
    assert found["letters"][0]["record"] == f"0: {HOSTILE}"
    page = client.get("pipelines/page_views/txids/1?letters=true").text
    assert "20 of 33 shown" in page
    assert "<script>alert" not in page
    assert "of another txid" not in page
    assert "Show them" in client.get("pipelines/page_views/txids/1").text


def test_a_definition_that_masks_columns_keeps_records_from_being_shown(made: Made, web: Web) -> None:
    made.define("page_views")
    file = made.pipelines / "page_views.py"
    text = file.read_text().replace("import Aggregate", "import Aggregate, Checks")
    file.write_text(text.replace("    orchestration=", '    checks=Checks(mask=("page",)),\n    orchestration='))
    generation = made.generation("page_views", "h", 4)
    _letters(made, generation, 2)
    found = web.as_user("viewer").get("api/pipelines/page_views/txids/1/dead").json()
    assert (found["total"], found["masked"], {one["record"] for one in found["letters"]}) == (2, True, {None})


def test_a_table_that_is_gone_has_no_dead_letters(made: Made, web: Web) -> None:
    made.generation("page_views", made.define("page_views"), 4)
    found = web.as_user("viewer").get("api/pipelines/page_views/txids/1/dead").json()
    assert found == {"total": 0, "letters": [], "masked": False}
