"""Texts from outside, as both databases take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Column, ColumnElement, and_, true

from twinstream.transaction import canonical_json


def storable(text: str) -> str:
    """Without NUL and without halves of surrogate pairs: reasons and errors may quote any input."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def may_say(column: Column[Any], context: Mapping[str, str]) -> ColumnElement[bool]:
    """Narrows a query down to rows whose context may say all of this; `says` decides."""
    return and_(
        true(),
        *(column.contains(canonical_json({name: value})[1:-1], autoescape=True) for name, value in context.items()),
    )


def says(text: str | None, context: Mapping[str, str]) -> bool:
    """Whether a stored context says all of this, whatever else it says."""
    stored = json.loads(text) if text else {}
    return all(stored.get(name) == value for name, value in context.items())
