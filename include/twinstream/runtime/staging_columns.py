"""Columns of staged rows that are the same for every group, made once: telling the JVM takes longer than using them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from twinstream.runtime.tallies import of_records, row_digest

if TYPE_CHECKING:
    from pyspark.sql import Column

EMITTED, FILTERED, DEAD, DISCARDED, LATE, DUPLICATE = range(6)


class StagingColumns:
    """Columns over classified and prepared rows, and over what an operator makes of them."""

    def __init__(self, state: Mapping[str, str]) -> None:
        self._state = state

    @cached_property
    def kept(self) -> Column:
        from pyspark.sql import functions as F

        return F.col("_class") == EMITTED

    @cached_property
    def dead(self) -> Column:
        """A dead letter as text, which is cheaper to group by than a struct; there are few of them."""
        from pyspark.sql import functions as F

        text = F.to_json(F.struct("_reason", "_file", "_raw", F.col("_hash").alias("_line")))
        return F.when(F.col("_class") == DEAD, text)

    @cached_property
    def told(self) -> Column:
        """The dead letter again."""
        from pyspark.sql import functions as F

        return F.from_json("_dead", "_reason string, _file string, _raw string, _line bigint")

    @cached_property
    def once(self) -> Column:
        from pyspark.sql import functions as F

        return F.lit(1).cast("bigint").alias("_occurrences")

    @cached_property
    def occurrences(self) -> Column:
        from pyspark.sql import functions as F

        return F.col("_records")

    @cached_property
    def tallied(self) -> list[Column]:
        """What accounts for the records behind a partial."""
        from pyspark.sql import functions as F

        highest = F.max(F.when(F.col("_class") != DEAD, F.unix_micros("_event_time"))).alias("_highest")
        return [*of_records(F.col("_first")), highest]

    @cached_property
    def digest(self) -> Column:
        from pyspark.sql import functions as F

        return F.when(F.col("_class") == EMITTED, row_digest(list(self._state.items()))).alias("_digest")

    @cached_property
    def kind(self) -> Column:
        """The folder of a row's file."""
        from pyspark.sql import functions as F

        found = F.when(F.col("_class") == EMITTED, "partial").when(F.col("_class") == DEAD, "dead").otherwise("counts")
        return found.alias("_kind")

    def class_of(self, duplicates: bool, late: Column | None = None) -> Column:
        """The one class of each record, but for lateness that is judged at commit."""
        from pyspark.sql import functions as F

        found = F.when(F.col("_reason").isNotNull(), DEAD).when(F.col("_discarded"), DISCARDED)
        if duplicates:
            found = found.when(F.col("_duplicate"), DUPLICATE)
        found = found.when(~F.col("_kept"), FILTERED)
        if late is not None:
            found = found.when(late, LATE)
        return found.otherwise(EMITTED)
