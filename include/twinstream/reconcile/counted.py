"""What is counted while a side is scanned anyway: no scan of its own, only a few sums that ride along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinstream.batch.recompute import observed_values
from twinstream.operators.base import col
from twinstream.quality.facts import SideFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NULL_KEYS = "null_keys"


class Counted:
    """A table that counts its rows with null keys and with measures below zero when it is read first."""

    def __init__(self, rows: DataFrame, key: Sequence[str], non_negative: Sequence[str]) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        self._names = {f"below_{place}": name for place, name in enumerate(non_negative)}
        self._has_key = bool(key)
        self._seen = Observation()
        null = F.lit(False)
        for name in key:
            null = null | col(name).isNull()
        sums = [F.count(F.when(null, F.lit(1))).alias(NULL_KEYS)]
        sums += [F.count(F.when(col(name) < 0, F.lit(1))).alias(alias) for alias, name in self._names.items()]
        self.rows = rows.observe(self._seen, *sums)

    def facts(self, rows: int, duplicate_keys: int | None) -> SideFacts:
        """What went by; the rows must have been read."""
        seen = observed_values(self._seen) if rows else {}
        return SideFacts(
            rows=rows,
            duplicate_keys=duplicate_keys,
            null_keys=seen.get(NULL_KEYS, 0) if self._has_key else None,
            below_zero={name: seen.get(alias, 0) for alias, name in self._names.items()},
        )
