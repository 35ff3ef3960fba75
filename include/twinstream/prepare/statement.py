"""The SELECT that a prepare may be: its shape checked and its clauses cut out of the user's own text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError
from twinstream.prepare.expressions import refused
from twinstream.prepare.tokens import Token, tokenize, unreadable, without_comments

if TYPE_CHECKING:
    from sqlglot import exp

_ALLOWED = ("expressions", "from", "where", "laterals", "kind")
_CLAUSES = {
    "joins": "joins",
    "group": "GROUP BY",
    "having": "HAVING",
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "with": "common table expressions (WITH)",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "hint": "hints",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
}
_SHAPE = "Write it as 'select … from events where …'."


@dataclass(frozen=True)
class Span:
    """A piece of the statement's text."""

    start: int
    end: int


@dataclass(frozen=True)
class Statement:
    """A checked SELECT: its tree, its tokens, and where its items and its condition stand."""

    sql: str
    tree: exp.Select
    tokens: list[Token]
    items: list[Span]
    where: Span | None
    table: str
    lateral: exp.Lateral | None


def read_statement(sql: str) -> Statement:
    """Reads `sql` and refuses, by name, every shape but one SELECT from `events`."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    tokens = tokenize(sql)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise DefinitionError("prepare is empty.", next_step=_SHAPE)
    sql = without_comments(sql, tokens)[: tokens[-1].end]
    try:
        trees = sqlglot.parse(sql, read="spark")
    except SqlglotError as error:
        raise unreadable(sql, error) from error
    if len(trees) != 1:
        raise DefinitionError("prepare has more than one statement.", next_step=_SHAPE)
    tree = trees[0]
    if isinstance(tree, exp.SetOperation):
        raise refused(tree.key.upper(), _SHAPE)
    if not isinstance(tree, exp.Select) or tokens[0].word not in ("select", "with"):
        raise DefinitionError("prepare is not a SELECT.", next_step=_SHAPE)
    _refuse_clauses(tree)
    table = _table(tree)
    laterals = tree.args.get("laterals") or []
    if len(laterals) > 1:
        raise refused("more than one LATERAL VIEW", "Explode a flattened array: explode(flatten(transform(…))).")
    items, where = _cut(tokens, tree, len(sql))
    if len(items) != len(tree.expressions):
        raise DefinitionError(
            "The items of prepare's SELECT cannot be told apart.",
            next_step="Look for a comma too many; write casts as cast(x as type), not x::type.",
        )
    return Statement(sql, tree, tokens, items, where, table, laterals[0] if laterals else None)


def _refuse_clauses(tree: exp.Select) -> None:
    for key, value in tree.args.items():
        clause = key.rstrip("_")
        if value and clause not in _ALLOWED:
            raise refused(_CLAUSES.get(clause, clause.upper().replace("_", " ")), _SHAPE)
    if tree.args.get("kind"):
        raise refused(f"SELECT AS {tree.args['kind']}", _SHAPE)


def _table(tree: exp.Select) -> str:
    """The name by which the statement knows its table, which must be `events`."""
    from sqlglot import exp

    source = tree.args.get("from_") or tree.args.get("from")
    if source is None:
        raise DefinitionError("prepare reads from no table.", next_step=_SHAPE)
    table = source.this
    if isinstance(table, exp.Subquery):
        raise refused("subqueries", _SHAPE)
    if not isinstance(table, exp.Table) or table.name.lower() != "events" or table.db:
        raise DefinitionError(
            f"prepare reads from {table.sql(dialect='spark')}; its only table is 'events', the source's records.",
            next_step=_SHAPE,
        )
    for key, value in table.args.items():
        if value and key.rstrip("_") not in ("this", "alias"):
            raise refused(_CLAUSES.get(key.rstrip("_"), key.rstrip("_").upper().replace("_", " ")), _SHAPE)
    alias = table.args.get("alias")
    if alias and alias.columns:
        raise refused("names for the columns of events", _SHAPE)
    return table.alias or table.name


def _cut(tokens: list[Token], tree: exp.Select, end: int) -> tuple[list[Span], Span | None]:
    """Where the SELECT's items and the condition stand."""
    source = tree.args.get("from_") or tree.args["from"]
    table = source.this.this.meta["start"]
    top = [token for token in tokens if token.depth == 0]
    # 'is distinct from' has a FROM too: the clause is the one right before the table.
    clause = [token for token in top if token.word == "from" and token.start < table][-1]
    start = tokens[1].end if tokens[1].word == "all" else tokens[0].end
    items: list[Span] = []
    for token in top:
        if token.text == "," and token.start < clause.start:
            items.append(Span(start, token.start))
            start = token.end
    items.append(Span(start, clause.start))
    condition = [token for token in top if token.word == "where" and token.start > table]
    return items, Span(condition[0].end, end) if condition else None
