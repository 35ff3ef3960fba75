"""Column lists as people write them (`"event_id string, amount decimal(12,2)"`), read without a JVM.

Spark itself can read such a list, but only once it runs; a definition is checked long before that, in the command line
and while Airflow parses its DAGs.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache

from twinstream.errors import DefinitionError

_SIMPLE = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
}
_DECIMAL = ("decimal", "dec", "numeric")
_NESTED = ("array", "map", "struct")
TYPE_NAMES = frozenset([*_SIMPLE, *_DECIMAL, *_NESTED])
_ELSEWHERE = {
    "text": "string",
    "varchar": "string",
    "char": "string",
    "character": "string",
    "str": "string",
    "uuid": "string",
    "json": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "number": "decimal(38,9)",
    "int64": "bigint",
    "int32": "int",
    "float64": "double",
    "bytes": "binary",
    "bytea": "binary",
}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+\Z", re.ASCII)


@dataclass(frozen=True)
class SparkType:
    """A Spark type: its name (`bigint`, `decimal(12,2)`, `array`, …) and, for nested types, what it is made of.

    The parts of an array are `element`, of a map `key` and `value`, of a struct its fields.
    """

    name: str
    parts: tuple[tuple[str, SparkType], ...] = ()

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{','.join(f'{_quoted(name)}:{part}' for name, part in self.parts)}>"
        if self.parts:
            return f"{self.name}<{','.join(str(part) for _, part in self.parts)}>"
        return self.name

    def field(self, name: str) -> SparkType | None:
        """What `.name` on a value of this type gives: a struct's field, a map's value, or an array of fields."""
        if self.name == "struct":
            return next((part for field, part in self.parts if field.lower() == name.lower()), None)
        if self.name == "map" and str(self.parts[0][1]) == "string":
            return self.parts[1][1]
        if self.name == "array" and self.parts[0][1].name == "struct":
            inner = self.parts[0][1].field(name)
            return SparkType("array", (("element", inner),)) if inner else None
        return None


def parse_columns(ddl: str) -> dict[str, str]:
    """Names and canonical Spark types of a column list, in its order; DefinitionError says what is wrong with it."""
    reader = _Reader(ddl)
    columns: dict[str, str] = {}
    if not reader.words:
        raise DefinitionError("The schema names no column.", next_step="Write it as 'event_id string, at timestamp'.")
    for name, kind in reader.fields(end=None):
        if name.startswith("_"):
            raise DefinitionError(
                f"Column {name!r} starts with an underscore; those names are kept for Twinstream's own columns.",
                next_step="Rename it in the source, or read it under another name.",
            )
        columns[name] = str(kind)
    return columns


@lru_cache(maxsize=1024)
def parse_type(text: str) -> SparkType:
    """One type, such as `array<struct<sku:string,qty:int>>`."""
    reader = _Reader(text)
    kind = reader.type()
    reader.finish()
    return kind


def nearest(name: str, options: list[str]) -> str:
    """'Did you mean …?' for the option that looks most like `name`, or nothing."""
    lowered = {option.lower(): option for option in options}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"Did you mean {lowered[close[0]]!r}?" if close else ""


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


class _Reader:
    """A recursive-descent reader of Spark's column lists over sqlglot's tokens."""

    def __init__(self, text: str) -> None:
        from sqlglot import TokenType, tokenize
        from sqlglot.errors import SqlglotError

        self.text = text
        try:
            tokens = tokenize(text, read="spark")
        except SqlglotError as error:
            raise self.error("it cannot be read") from error
        self.words = [(text[token.start : token.end + 1], token.text) for token in tokens]
        self.strings = {n for n, token in enumerate(tokens) if token.token_type is TokenType.STRING}
        self.at = 0

    def error(self, reason: str, hint: str = "") -> DefinitionError:
        example = "Write it as 'event_id string, amount decimal(12,2), items array<struct<sku:string,qty:int>>'."
        return DefinitionError(f"The column list {self.text!r} is not right: {reason}.", next_step=hint or example)

    def peek(self) -> str | None:
        return self.words[self.at][0].lower() if self.at < len(self.words) else None

    def accept(self, symbol: str) -> bool:
        if self.peek() == symbol:
            self.at += 1
            return True
        return False

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            found = self.peek()
            raise self.error(f"{symbol!r} expected, " + (f"{found!r} found" if found else "but it ends there"))

    def finish(self) -> None:
        if self.at < len(self.words):
            raise self.error(f"{self.peek()!r} is not expected there")

    def fields(self, end: str | None) -> list[tuple[str, SparkType]]:
        """`name [:] type [comment '…']`, separated by commas, up to `end` or the end of the text."""
        found: list[tuple[str, SparkType]] = []
        while True:
            name = self.name()
            if name.lower() in (other.lower() for other, _ in found):
                raise self.error(f"the name {name!r} is there twice (upper and lower case do not differ in Spark)")
            self.accept(":")
            found.append((name, self.type()))
            self.remarks(name)
            if not self.accept(","):
                break
        if end is None:
            self.finish()
        else:
            self.expect(end)
        return found

    def name(self) -> str:
        if self.at == len(self.words):
            raise self.error("a name is expected at its end")
        source, name = self.words[self.at]
        if not source.startswith("`") and not _PLAIN_NAME.match(source):
            raise self.error(f"{source!r} is not a name; put backticks around unusual names")
        if not name.strip():
            raise self.error("a name is empty")
        self.at += 1
        return name

    def remarks(self, name: str) -> None:
        if self.peek() == "not":
            raise self.error(f"NOT NULL is not checked when records are read, so {name!r} may not promise it")
        if self.accept("comment"):
            if self.at not in self.strings:
                raise self.error("COMMENT needs a text in quotes")
            self.at += 1

    def type(self) -> SparkType:
        if self.at == len(self.words):
            raise self.error("a type is missing at its end")
        word = self.words[self.at][0].lower()
        self.at += 1
        if word in _SIMPLE:
            return SparkType(_SIMPLE[word])
        if word in _DECIMAL:
            return self.decimal()
        if word == "array":
            self.expect("<")
            element = self.type()
            self.expect(">")
            return SparkType("array", (("element", element),))
        if word == "map":
            self.expect("<")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            return SparkType("map", (("key", key), ("value", value)))
        if word == "struct":
            self.expect("<")
            return SparkType("struct", tuple(self.fields(end=">")))
        raise self.error(f"{word!r} is not a type that can be used here", self.hint(word))

    def hint(self, word: str) -> str:
        if word in _ELSEWHERE:
            return f"Spark's name for it is {_ELSEWHERE[word]!r}."
        return nearest(word, sorted(TYPE_NAMES))

    def decimal(self) -> SparkType:
        if not self.accept("("):
            return SparkType("decimal(10,0)")
        precision, scale = self.number(), 0
        if self.accept(","):
            scale = self.number()
        self.expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self.error(
                f"decimal({precision},{scale}) does not exist; 1 to 38 digits, of which at most all behind the point"
            )
        return SparkType(f"decimal({precision},{scale})")

    def number(self) -> int:
        word = self.peek() or ""
        if not word.isascii() or not word.isdigit():
            raise self.error("a decimal's digits are written as decimal(12,2)")
        self.at += 1
        return int(word)
