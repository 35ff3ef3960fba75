"""The users' suite as a commit gate: what fails critically is held, and nobody has read it yet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.pipeline import check_name
from twinstream.quality.outcomes import outcomes
from twinstream.quality.users import check_columns, load_suite
from twinstream.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

one_at_a_time = threading.RLock()
"""Great Expectations has one current context per process; groups are processed side by side."""


def gate(pipeline: str, folder: str | None = None) -> Callable[[DataFrame], str | None]:
    """The users' suite of a pipeline, for `Pipeline(gate=gate("page_views"))`.

    It sees the rows that a group of txids would add to the result. Only critical expectations hold a txid: warnings
    are for the report. `folder` is the expectations folder where it is not the one of the settings.
    """
    check_name(pipeline)

    def ask(rows: DataFrame) -> str | None:
        """Why these rows may not be committed, or None."""
        return refusal(pipeline, folder, rows)

    return ask


def refusal(pipeline: str, folder: str | None, rows: DataFrame) -> str | None:
    """The critical expectations of the users' suite that these rows fail, in one line; None when there are none."""
    place = Path(folder).expanduser() if folder else Settings.from_env().expectations
    with one_at_a_time:
        suite = load_suite(place, pipeline)
        check_columns(suite, pipeline, rows.columns)
        rows = rows.persist()  # Great Expectations asks several questions; the rows are merged for the first only.
        try:
            found = outcomes(_validated(suite, rows), pipeline)
        finally:
            rows.unpersist()
    failed = [one for one in found if not one.success and one.severity == "critical"]
    return "; ".join(f"{one.says}: found {one.observed or 'otherwise'}" for one in failed) or None


def _validated(suite: Any, rows: DataFrame) -> Any:
    """Asks the suite in a context of its own that leaves nothing behind."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    source = context.data_sources.add_spark("rows", persist=False)
    batch = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("rows")
    return batch.get_batch(batch_parameters={"dataframe": rows}).validate(suite)
