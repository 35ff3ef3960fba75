"""Checking a certificate again: what can still be recomputed is, and the rest is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinstream.batch.scope import EVERYTHING
from twinstream.batch.table import is_table, read_table
from twinstream.engine import Engine
from twinstream.errors import Refused
from twinstream.ledger import Run
from twinstream.reconcile.certificate import Check, check_text
from twinstream.reconcile.digests import digest, is_current
from twinstream.reconcile.key import result_key
from twinstream.reconcile.reconcile import options_of
from twinstream.reconcile.shape import shape_of
from twinstream.reconcile.sides import Sides


def verify(engine: Engine, content: Mapping[str, Any]) -> list[Check]:
    """Every check with its outcome; None where something is not there any more."""
    definition = engine.definition(content["pipeline"])
    known = {generation.name: generation for generation in engine.ledger.generations.of(definition.name)}
    generation = known.get(content["generation"])
    if generation is None:
        return [Check("The ledger knows the generation", None, f"{content['generation']} is not in this ledger")]
    frontier = int(content["frontier"])
    batches = engine.ledger.batches.get(generation.id, 1, frontier)
    checks = check_text(content, batches, definition.hash)
    kept = [batch for batch in batches if batch.discard_reason is None]
    changes = definition.pipeline.source.changes(engine.places(definition), [batch.range for batch in kept])
    gone = [kept[place].txid for place in changes]
    shown = ", ".join(map(str, gone[:10])) + (" …" if len(gone) > 10 else "")
    checks.append(
        Check(
            "The source still holds what was read", not gone, f"txids {shown} cannot be proven any more" if gone else ""
        )
    )
    if definition.hash != content["definition_hash"]:
        return [*checks, Check("The digests are those of the tables", None, "the definition has changed since")]
    if not is_current(content["stream"]["digest"]):
        older = "another version of Twinstream made them in another form; a new reconciliation makes a new certificate"
        return [*checks, Check("The digests are those of the tables", None, older)]
    spark = engine.spark()
    columns = definition.columns(spark)
    options = options_of(definition)
    key = result_key(definition, columns)
    folder = content["batch"].get("table")
    table = engine.settings.home / folder / "table" if folder else None
    if table is not None and table.resolve().is_relative_to(engine.settings.home.resolve()) and is_table(table):
        rows = read_table(spark, table)
        rows = rows.drop(*(name for name in rows.columns if name.startswith("_")))
        made = digest(rows, shape_of(rows.schema, key, options.exclude))
        checks.append(Check("The batch table has the digest", made.hexdigest == content["batch"]["digest"]))
    else:
        checks.append(Check("The batch table has the digest", None, "the batch table is gone"))
    run = Run(0, generation.id, "verify", frontier, EVERYTHING.to_dict(), definition.hash, "", None, "", 0)
    store = engine.store(definition, generation)
    try:
        rows = Sides(spark, definition, columns, store, engine.settings.home, run).stream()
    except Refused as error:
        return [*checks, Check("The stream's table has the digest", None, error.what)]
    made = digest(rows, shape_of(rows.schema, key, options.exclude))
    return [*checks, Check("The stream's table has the digest", made.hexdigest == content["stream"]["digest"])]
