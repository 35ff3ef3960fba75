"""Spark's type names as Delta writes them in a table's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


def delta_schema(columns: Mapping[str, str]) -> Any:
    """The Delta schema of columns given as name and simple Spark type."""
    from deltalake import Schema

    return Schema.from_json(json.dumps(_struct(dict(columns))))


def _struct(columns: Mapping[str, str]) -> dict[str, Any]:
    fields = [{"name": name, "type": _type(kind), "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return {"type": "struct", "fields": fields}


def _type(kind: str) -> Any:
    if kind.startswith("array<"):
        return {"type": "array", "elementType": _type(kind[6:-1]), "containsNull": True}
    if kind.startswith("map<"):
        key, value = split_top(kind[4:-1])
        return {"type": "map", "keyType": _type(key), "valueType": _type(value), "valueContainsNull": True}
    if kind.startswith("struct<"):
        pairs = (part.split(":", 1) for part in split_top(kind[7:-1]))
        return _struct({name.strip(): value for name, value in pairs})
    return _NAMES.get(kind, kind)


def split_top(text: str) -> list[str]:
    """Splits at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]
