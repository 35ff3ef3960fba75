"""The type of an SQL expression, as far as it can be told without Spark.

A wrong answer would be worse than none: whatever is not certain is None, and Spark tells it later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.columns import SparkType, parse_type
from twinstream.errors import DefinitionError

if TYPE_CHECKING:
    from sqlglot import exp

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class Scope:
    """The names that an expression may use: the columns of `table`, and the `item` that an explode gives."""

    columns: Mapping[str, str | None]
    table: str = "events"
    view: str | None = None
    item: str | None = None
    item_type: str | None = None

    def resolve(self, parts: list[str]) -> list[str] | None:
        """The path without its table, starting with a column or the item; None when there is no such column."""
        lowered = [part.lower() for part in parts]
        names = {name.lower() for name in self.columns}
        if lowered[0] == self.table.lower() and len(parts) > 1 and lowered[1] in names:
            return parts[1:]
        item = (self.item or "").lower()
        if self.view and item and lowered[0] == self.view.lower() and lowered[1:2] == [item]:
            return parts[1:]
        return parts if lowered[0] in names or (item and lowered[0] == item) else None

    def type(self, parts: list[str]) -> SparkType | None:
        """The type of a path such as `["items", "sku"]`."""
        path = self.resolve(parts)
        if path is None:
            return None
        known = {name.lower(): kind for name, kind in self.columns.items()}
        if self.item:
            known[self.item.lower()] = self.item_type
        text = known[path[0].lower()]
        kind = parse_type(text) if text else None
        for part in path[1:]:
            kind = kind.field(part) if kind else None
        return kind


def type_of(node: exp.Expr | None, scope: Scope) -> SparkType | None:
    """The type of `node`, or None."""
    from sqlglot import exp

    if node is None or node.find_ancestor(exp.Lambda):
        return None
    if isinstance(node, (exp.Paren, exp.Alias)):
        return type_of(node.this, scope)
    if isinstance(node, exp.Neg):
        kind = type_of(node.this, scope)
        return kind if kind and kind.name.startswith(_NUMBERS) else None
    if isinstance(node, (exp.CurrentTimestamp, exp.CurrentDate)):
        date = isinstance(node, exp.CurrentDate)
        taken = scope.resolve(["current_date" if date else "current_timestamp"])
        return None if taken else SparkType("date" if date else "timestamp")
    if isinstance(node, exp.Column):
        return scope.type([part.name for part in node.parts])
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        kind = type_of(node.this, scope)
        return kind.field(node.expression.name) if kind else None
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1:
        kind = type_of(node.this, scope)
        return kind.parts[-1][1] if kind and kind.name in ("array", "map") else None
    if isinstance(node, exp.Cast):  # try_cast is one too
        return _of_cast(node)
    if isinstance(node, exp.Literal):
        return _of_literal(node)
    if isinstance(node, _predicates()):
        return SparkType("boolean")
    if isinstance(node, (exp.Upper, exp.Lower)):
        return SparkType("string")
    if isinstance(node, (exp.Coalesce, exp.Case, exp.If)):
        return _common(_branches(node), scope)
    return None


def _predicates() -> tuple[type[exp.Expr], ...]:
    from sqlglot import exp

    return (
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ),
        *(exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Boolean),
    )


def _of_cast(node: exp.Cast) -> SparkType | None:
    try:
        return parse_type(node.to.sql(dialect="spark"))
    except DefinitionError:
        return None


def _of_literal(node: exp.Literal) -> SparkType | None:
    if node.is_string:
        return SparkType("string")
    digits = str(node.this)
    return SparkType("int") if digits.isdigit() and int(digits) < 2**31 else None


def _branches(node: exp.Expr) -> list[exp.Expr | None]:
    from sqlglot import exp

    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.If):
        return [node.args.get("true"), node.args.get("false")]
    return [*(branch.args.get("true") for branch in node.args["ifs"]), node.args.get("default")]


def _common(nodes: list[exp.Expr | None], scope: Scope) -> SparkType | None:
    """The type that all branches have; a missing or null branch has any type."""
    from sqlglot import exp

    kinds = {type_of(node, scope) for node in nodes if node is not None and not isinstance(node, exp.Null)}
    return kinds.pop() if len(kinds) == 1 else None
