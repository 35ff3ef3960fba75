"""What identifies a row of the result."""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.pipeline import Definition


def result_key(definition: Definition, columns: Mapping[str, str]) -> list[str]:
    """The columns that identify a row of the result; for rows that stand for themselves, the record id."""
    operator = definition.pipeline.operator
    if not operator.stateless:
        return [*operator.keys, *(["window_start"] if operator.window else [])]
    found = operator.result_columns(columns)
    return [definition.pipeline.record_id] if definition.pipeline.record_id in found else list(found)
