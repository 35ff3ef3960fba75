"""The one explode that a prepare may have, in a LATERAL VIEW or in the SELECT list.

What a record gives is put together as an array first and exploded at the very end. So a record that gives nothing is
known as such and stays as one row that is not kept, and the first row of each record is known too: the accounting
counts records, not rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from twinstream.errors import DefinitionError
from twinstream.prepare.expressions import generator, refused
from twinstream.prepare.tokens import Edit, edited, quoted
from twinstream.prepare.types import Scope, type_of

if TYPE_CHECKING:
    from sqlglot import exp

    from twinstream.prepare.rows import Rows
    from twinstream.prepare.sql import Item
    from twinstream.prepare.statement import Statement

_LATERAL = "Write it as 'lateral view explode(items) t as item'."


@dataclass(frozen=True)
class Explode:
    """Which array is exploded; `lateral` when the condition and the items are over its elements."""

    ITEM: ClassVar[str] = "`_item`"

    array: str
    span: tuple[int, int]
    position: int
    outer: bool
    lateral: bool
    element: str | None
    scope: Scope

    def is_item(self, node: exp.Expr) -> bool:
        """Is this item of the SELECT the explode itself?"""
        return not self.lateral and _call(node.unalias()) is not None

    def edited(self, sql: str, edits: Iterable[Edit]) -> Explode:
        """The same with the edits made to the array's expression."""
        return replace(self, array=edited(sql, edits, *self.span))

    def run(self, rows: Rows, items: Sequence[Item], where: str | None) -> Rows:
        """The rows that the records give."""
        return self._run_lateral(rows, items, where) if self.lateral else self._run_in_list(rows, items, where)

    def _run_lateral(self, rows: Rows, items: Sequence[Item], where: str | None) -> Rows:
        from pyspark.sql import functions as F

        item = quoted(str(self.scope.item))
        chosen = f"filter({self._elements()}, {item} -> {where})" if where else self._elements()
        fields = ", ".join(f"'c{n}', {entry.sql}" for n, entry in enumerate(items))
        made = f"transform({chosen}, {item} -> named_struct({fields}))"
        exploded = rows.unfold(F.expr(made), keep_columns=False)
        return exploded.project([(entry.name, F.col(f"_item.c{n}"), True) for n, entry in enumerate(items)])

    def _run_in_list(self, rows: Rows, items: Sequence[Item], where: str | None) -> Rows:
        from pyspark.sql import functions as F

        if where:
            rows = rows.keep(F.expr(where))
        exploded = rows.unfold(F.expr(self._elements()), keep_columns=True)
        return exploded.project([(entry.name, F.expr(entry.sql), entry.bare) for entry in items])

    def _elements(self) -> str:
        """The array; with OUTER an array that is null or empty counts as one null element."""
        if not self.outer:
            return f"({self.array})"
        return f"(case when cardinality({self.array}) > 0 then {self.array} else array(null) end)"


def read_explode(statement: Statement, scope: Scope) -> Explode | None:
    """The explode of a statement, if it has one; DefinitionError when it cannot be run."""
    listed = [node for node in statement.tree.expressions if _generator(node)]
    if statement.lateral is not None:
        if listed:
            raise generator("explode")
        return _read_lateral(statement, statement.lateral, scope)
    if len(listed) > 1:
        raise refused("more than one explode", "Explode an array of structs: explode(arrays_zip(a, b)).")
    return _read_in_list(statement, listed[0], scope) if listed else None


def _read_lateral(statement: Statement, lateral: exp.Lateral, scope: Scope) -> Explode:
    if not lateral.args.get("view"):
        raise refused("LATERAL joins", _LATERAL)
    call = _call(lateral.this)
    if call is None:
        raise generator(_name(lateral.this))
    alias = lateral.args.get("alias")
    names = [column.name for column in alias.columns] if alias else []
    if len(names) != 1:
        raise refused("exploding a map" if names else "LATERAL VIEW without a name for its items", _LATERAL)
    item = names[0]
    if item.lower() in (name.lower() for name in scope.columns):
        raise DefinitionError(
            f"The exploded item is called {item!r}, like a column of the source.", next_step="Give it another name."
        )
    if item.startswith("_"):
        raise DefinitionError(f"The exploded item may not be called {item!r}: such names are Twinstream's own.")
    element = _element(call, scope)
    view = alias.this.name if alias is not None and alias.this else None
    start, span = _place(statement)
    outer = bool(lateral.args.get("outer")) or _name(lateral.this) == "explode_outer"
    inside = replace(scope, view=view, item=item, item_type=element)
    return Explode("", span, start, outer, True, element, inside)


def _read_in_list(statement: Statement, node: exp.Expr, scope: Scope) -> Explode:
    from sqlglot import exp

    call = _call(node.unalias())
    if isinstance(node, exp.Aliases):
        raise refused("exploding a map or posexplode", "Explode map_entries(…) and select its key and value.")
    if call is None:
        raise generator(_name(node.unalias()))
    if not isinstance(node, exp.Alias):
        raise DefinitionError(
            "The explode in prepare's SELECT has no name.", next_step="Name it: explode(items) as item."
        )
    element = _element(call, scope)
    start, span = _place(statement)
    return Explode("", span, start, _name(node.this) == "explode_outer", False, element, scope)


def _generator(node: exp.Expr) -> bool:
    from twinstream.prepare import catalog

    return _name(node.unalias()) in catalog.GENERATORS


def _call(node: exp.Expr) -> exp.Expr | None:
    """The argument of explode or explode_outer, or None when the node is not a plain call of one of them."""
    return node.this if _name(node) in ("explode", "explode_outer") else None


def _name(node: exp.Expr) -> str:
    """A function's name as Spark knows it."""
    from sqlglot import exp

    node = node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return str(node.sql_name()).lower() if isinstance(node, exp.Func) else ""


def _element(array: exp.Expr, scope: Scope) -> str | None:
    """The type of the array's elements; maps are refused here when the type is known, by Spark when it is not."""
    kind = type_of(array, scope)
    if kind is None:
        return None
    if kind.name == "map":
        raise refused("exploding a map", "Explode map_entries(…): an array of structs with key and value.")
    if kind.name != "array":
        raise DefinitionError(f"prepare explodes {array.sql(dialect='spark')}, which is a {kind}, not an array.")
    return str(kind.parts[0][1])


def _place(statement: Statement) -> tuple[int, tuple[int, int]]:
    """Where the explode's name starts, and from where to where its argument goes."""
    tokens = statement.tokens
    for n, token in enumerate(tokens):
        if token.depth == 0 and token.word in ("explode", "explode_outer") and tokens[n + 1].text == "(":
            close = next(t for t in tokens[n + 2 :] if t.depth == 0 and t.text == ")")
            return token.start, (tokens[n + 1].end, close.start)
    raise generator("explode")
