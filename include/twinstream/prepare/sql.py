"""`prepare` written as SQL: one SELECT over the source's records, which are called `events`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError
from twinstream.prepare.explode import Explode, read_explode
from twinstream.prepare.expressions import check, unknown_column
from twinstream.prepare.statement import Span, Statement, read_statement
from twinstream.prepare.tokens import Edit, edited, quoted
from twinstream.prepare.types import Scope, type_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from sqlglot import exp

    from twinstream.prepare.rows import Rows


@dataclass(frozen=True)
class Item:
    """One column of the result: its SQL, its type where it is known, and whether it is a column as it stands.

    A column as it stands (or a field of one) cannot fail, so it needs no guard.
    """

    name: str
    sql: str
    type: str | None = None
    bare: bool = False


@dataclass(frozen=True)
class Select:
    """A checked SELECT, ready to be run on rows."""

    items: tuple[Item, ...]
    where: str | None = None
    explode: Explode | None = None

    @property
    def output(self) -> dict[str, str | None]:
        """Names and types of the result."""
        return {item.name: item.type for item in self.items}

    def __call__(self, rows: Rows) -> Rows:
        """The result's rows."""
        if self.explode:
            return self.explode.run(rows, self.items, self.where)
        if self.where:
            rows = rows.keep(_expr(self.where))
        return rows.project([(item.name, _expr(item.sql), item.bare) for item in self.items])


def compile_sql(sql: str, columns: Mapping[str, str | None]) -> Select:
    """Checks `sql` against the source's columns; DefinitionError names what cannot be run, and why."""
    statement = read_statement(sql)
    explode = read_explode(statement, Scope(columns, table=statement.table))
    scope = explode.scope if explode else Scope(columns, table=statement.table)
    aliases = frozenset(node.alias.lower() for node in statement.tree.expressions if node.alias)
    edits = check(
        statement.tree,
        statement.tokens,
        scope,
        exploded=explode.position if explode else None,
        aliases=aliases,
    )
    items: list[Item] = []
    for node, span in zip(statement.tree.expressions, statement.items, strict=True):
        items += _read_item(statement, node, span, scope, edits, explode)
    _check_names(items)
    where = edited(statement.sql, edits, statement.where.start, statement.where.end) if statement.where else None
    if explode:
        explode = explode.edited(statement.sql, edits)
    return Select(tuple(items), where, explode)


def _read_item(
    statement: Statement, node: exp.Expr, span: Span, scope: Scope, edits: list[Edit], explode: Explode | None
) -> list[Item]:
    from sqlglot import exp

    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return _expand(node, scope)
    if isinstance(node, exp.Aliases):
        raise DefinitionError("An item of prepare's SELECT has several names.", next_step="Explode arrays, not maps.")
    if explode and explode.is_item(node):
        return [Item(node.alias, explode.ITEM, explode.element, bare=True)]
    kind = type_of(node, scope)
    text = str(kind) if kind else None
    if isinstance(node, exp.Alias):
        end = _end_of_expression(statement, node, span)
        bare = _is_path(node.this)
        return [Item(node.alias, edited(statement.sql, edits, span.start, end), text, bare)]
    if not _is_path(node):
        raise DefinitionError(
            f"{edited(statement.sql, [], span.start, span.end)!r} in prepare's SELECT has no name.",
            next_step="Name it: … as name.",
        )
    name = node.expression.name if isinstance(node, exp.Dot) else node.name
    return [Item(name, edited(statement.sql, edits, span.start, span.end), text, bare=True)]


def _end_of_expression(statement: Statement, node: exp.Alias, span: Span) -> int:
    """Where an item's expression ends and `[as] name` begins."""
    name = node.args["alias"].meta["start"]
    before = [token for token in statement.tokens if span.start <= token.start < name]
    return before[-1].start if before[-1].word == "as" else name


def _is_path(node: exp.Expr) -> bool:
    """A column or a field of one, with nothing to compute."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Dot):
        return isinstance(node.expression, exp.Identifier) and _is_path(node.this)
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)


def _expand(node: exp.Expr, scope: Scope) -> list[Item]:
    """`*`, `events.*`, the view's `t.*`, or all fields of a struct."""
    from sqlglot import exp

    star = node if isinstance(node, exp.Star) else node.this
    if star.args.get("replace") or star.args.get("rename"):
        raise DefinitionError("prepare's SELECT can leave columns out of '*' (EXCEPT), but not replace them there.")
    path = [part.name for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    items = _all_items(path, scope)
    left_out = {column.name.lower() for column in star.args.get("except_") or star.args.get("except") or []}
    for name in left_out - {item.name.lower() for item in items}:
        raise unknown_column(name, scope)
    return [item for item in items if item.name.lower() not in left_out]


def _all_items(path: list[str], scope: Scope) -> list[Item]:
    columns = [Item(name, quoted(name), kind, bare=True) for name, kind in scope.columns.items()]
    item = [Item(scope.item, quoted(scope.item), scope.item_type, bare=True)] if scope.item else []
    if not path:
        return columns + item
    if [part.lower() for part in path] == [scope.table.lower()]:
        return columns
    if scope.view and [part.lower() for part in path] == [scope.view.lower()]:
        return item
    resolved = scope.resolve(path)
    if resolved is None:
        raise unknown_column(".".join(path), scope)
    kind = scope.type(path)
    if kind is None or kind.name != "struct":
        raise DefinitionError(
            f"'{'.'.join(path)}.*' in prepare's SELECT is not known to be a struct.", next_step="Name its fields."
        )
    start = ".".join(quoted(part) for part in resolved)
    return [Item(name, f"{start}.{quoted(name)}", str(part), bare=True) for name, part in kind.parts]


def _check_names(items: list[Item]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name.startswith("_"):
            raise DefinitionError(
                f"prepare names a column {item.name!r}; names that start with an underscore are Twinstream's own.",
                next_step="Give it another name with AS.",
            )
        if item.name.lower() in seen:
            raise DefinitionError(f"prepare gives two columns the name {item.name!r}.", next_step="Rename one with AS.")
        seen.add(item.name.lower())


def _expr(sql: str) -> Column:
    from pyspark.sql import functions as F

    return F.expr(sql)
