"""The column types events can be made of, read from Spark's simple type strings without a JVM."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinstream.errors import DefinitionError

INTEGER_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"}
PLAIN = {"string", "boolean", "float", "double", "timestamp", "timestamp_ntz", "date", *INTEGER_BITS}

_DECIMAL = re.compile(r"(?:decimal|numeric|dec)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")


@dataclass(frozen=True, slots=True)
class Kind:
    """One column type: a plain name, a decimal with its digits, an array of an element or a struct of fields."""

    name: str
    precision: int = 0
    scale: int = 0
    element: Kind | None = None
    fields: tuple[tuple[str, Kind], ...] = ()

    @property
    def numeric(self) -> bool:
        return self.name in INTEGER_BITS or self.name in {"decimal", "double", "float"}


def parse_kind(column: str, text: str) -> Kind:
    """Read a type such as `array<struct<sku:string,qty:int>>`; refuse what no event can be made of."""
    stripped = text.strip()
    lowered = stripped.lower()
    name = ALIASES.get(lowered, lowered)
    if name in PLAIN:
        return Kind(name)
    if found := _DECIMAL.fullmatch(name):
        return Kind("decimal", precision=int(found[1] or 10), scale=int(found[2] or 0))
    if lowered.startswith("array<") and lowered.endswith(">"):
        return Kind("array", element=parse_kind(column, stripped[6:-1]))
    if lowered.startswith("struct<") and lowered.endswith(">"):
        return Kind("struct", fields=tuple(_field(column, part) for part in _split(stripped[7:-1])))
    raise DefinitionError(
        f"The generator cannot make values of type {text} (column {column}).",
        next_step="It knows string, boolean, integer, decimal, floating-point, timestamp and date columns, "
        "and arrays and structs of those.",
    )


def _field(column: str, part: str) -> tuple[str, Kind]:
    name, _, kind = part.partition(":")
    return name.strip().strip("`"), parse_kind(column, kind)


def _split(text: str) -> list[str]:
    """Cut at the commas that are outside every bracket."""
    parts, depth, begin = [], 0, 0
    for position, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
    return [*parts, text[begin:]]
