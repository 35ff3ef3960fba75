"""Few shuffle partitions for a while: for a few thousand small rows empty partitions cost more than the scan."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.sql.shuffle.partitions"
FEW = 4

_lock = threading.Lock()
_inside: dict[int, int] = {}
_before: dict[int, str | None] = {}


@contextmanager
def few_partitions(spark: SparkSession) -> Iterator[None]:
    """Shuffles that are planned meanwhile get few partitions; the last of several to leave restores the setting.

    Other work in the same session may be planned with few partitions too; that changes speed and no result.
    """
    session = id(spark)
    with _lock:
        _inside[session] = _inside.get(session, 0) + 1
        if _inside[session] == 1:
            _before[session] = spark.conf.get(SETTING, None)
            if int(_before[session] or 200) > FEW:
                spark.conf.set(SETTING, str(FEW))
    try:
        yield
    finally:
        with _lock:
            _inside[session] -= 1
            if _inside[session] == 0:
                del _inside[session]
                before = _before.pop(session)
                if before is None:
                    spark.conf.unset(SETTING)
                else:
                    spark.conf.set(SETTING, before)
