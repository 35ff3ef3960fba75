"""Checks and rewrites of SQL expressions: row-wise, deterministic, over known columns, with the logged batch time.

The same checks serve whole statements and single expressions, so that `where("now() > at")` on rows means what it means
in a SELECT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinstream.columns import nearest
from twinstream.errors import DefinitionError
from twinstream.prepare import catalog
from twinstream.prepare.tokens import Edit, Kind, Token, edited, tokenize, unreadable, without_comments
from twinstream.prepare.types import Scope, type_of

if TYPE_CHECKING:
    from sqlglot import exp

_OPERATORS = ("in", "and", "or", "not", "between", "like", "ilike", "rlike", "regexp", "is", "div", "escape")
_CLAUSES = ("as", "when", "then", "else", "case", "where", "select", "from", "except", "over", "distinct", "all")
_NOT_CALLS = frozenset((*_OPERATORS, *_CLAUSES, "interval"))
_PATTERNS = ("like", "ilike", "rlike", "regexp")
_SIZED_TYPES = ("varchar", "char", "character", "dec", "numeric", "timestamp_ntz", "timestamp_ltz")
_RELATIVE = ("now", "today", "tomorrow", "yesterday")


@dataclass(frozen=True)
class Expression:
    """An expression that Spark may run as it stands; `type` as far as it is known."""

    sql: str
    type: str | None


def compile_expression(sql: str, columns: Mapping[str, str | None]) -> Expression:
    """Checks one expression over the source's columns, such as an event time, and puts the batch time into it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    tokens = tokenize(sql)
    sql = without_comments(sql, tokens)
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except SqlglotError as error:
        raise unreadable(sql, error) from error
    scope = Scope(columns)
    edits = check(tree, tokens, scope)
    kind = type_of(tree, scope)
    return Expression(edited(sql, edits, 0, len(sql)), str(kind) if kind else None)


def check(
    tree: exp.Expr,
    tokens: list[Token],
    scope: Scope,
    *,
    exploded: int | None = None,
    aliases: frozenset[str] = frozenset(),
) -> list[Edit]:
    """Refuses what is not row-wise, deterministic and known; gives the edits that the text needs to run.

    `exploded` is where the one generator that is allowed stands; `aliases` are the names that the SELECT itself gives.
    """
    _refuse_queries_and_windows(tree)
    _refuse_relative_times(tree, scope)
    edits = _check_calls(tokens, scope, exploded)
    replaced = {edit.start for edit in edits}
    return edits + _check_columns(tree, scope, aliases, replaced)


def _refuse_queries_and_windows(tree: exp.Expr) -> None:
    from sqlglot import exp

    for node in tree.walk():
        if isinstance(node, exp.Query) and node is not tree:
            raise refused("subqueries", "Only columns of the record itself can be used; Enrich joins a table.")
        if isinstance(node, exp.Window):
            raise refused("window functions")
        if isinstance(node, exp.Star):
            place = node.parent.parent if isinstance(node.parent, exp.Column) else node.parent
            if not isinstance(place, (exp.Select, exp.Count)):  # count(*) is refused by its name
                raise refused("'*' inside a function", "Name the columns.")


def _refuse_relative_times(tree: exp.Expr, scope: Scope) -> None:
    """Spark reads 'now' and 'today' as the clock where a constant text becomes a date or a timestamp."""
    from sqlglot import exp

    for literal in tree.find_all(exp.Literal):
        words = str(literal.this).lower().split()
        if not literal.is_string or not words or words[0] not in _RELATIVE:
            continue
        parent = literal.parent
        around = parent.to.sql(dialect="spark").lower() if isinstance(parent, exp.Cast) else ""
        if isinstance(parent, (exp.Binary, exp.Between, exp.In)):
            around = " ".join(str(type_of(node, scope)) for node in parent.iter_expressions())
        if "timestamp" in around or "date" in around or isinstance(parent, exp.TsOrDsToDate):
            raise DefinitionError(
                f"prepare uses {literal.sql(dialect='spark')} as a time, which depends on when it runs.",
                next_step="Use current_timestamp(): in prepare it is the logged batch time.",
            )


def _check_calls(tokens: list[Token], scope: Scope, exploded: int | None) -> list[Edit]:
    names = {name.lower() for name in scope.columns}
    edits: list[Edit] = []
    for n, token in enumerate(tokens):
        before = tokens[n - 1] if n else None
        after = tokens[n + 1 : n + 3]
        called = bool(after) and after[0].text == "("
        if token.word == "|>":
            raise refused("the pipe '|>'")
        if token.kind is Kind.QUOTED and called:
            raise DefinitionError(
                f"{token.text}(…) is not a function that can be used here: write it without backticks."
            )
        if token.kind is not Kind.WORD:
            continue
        if not called:
            alone = not (before and before.text == ".") and not (after and after[0].text == ".")
            if alone and token.word not in names and not _is_alias(before):
                if token.word in catalog.BARE_CLOCK:
                    edits.append(Edit(token.start, token.end, catalog.CLOCK[token.word]))
                elif token.word in catalog.BARE_SESSION:
                    raise unsteady(token.word)
            continue
        if token.word in _NOT_CALLS or token.word in _SIZED_TYPES:
            continue
        if before and before.word in _PATTERNS and token.word in ("any", "some"):
            continue
        if before and before.text == ".":
            raise DefinitionError(
                f"{token.text}(…) is called with a qualifier: only Spark's own functions can be used in prepare.",
                next_step="Write the function's name alone.",
            )
        empty = len(after) > 1 and after[1].text == ")"
        if token.word in catalog.CLOCK and empty:
            edits.append(Edit(token.start, after[1].end, catalog.CLOCK[token.word]))
        elif token.start != exploded:
            check_function(token.word)
    return edits


def _is_alias(before: Token | None) -> bool:
    """`amount user`: a name right behind an expression names it."""
    if before is None or before.word in (*_OPERATORS, *_CLAUSES):
        return before is not None and before.word == "as"
    return before.kind is not Kind.SYMBOL or before.text in (")", "]")


def check_function(name: str) -> None:
    """Refuses a function of Spark's that is not row-wise or not deterministic, and one that Spark does not have."""
    if name in catalog.UNSTEADY:
        raise unsteady(name)
    if name in catalog.CLOCK and name not in catalog.ROW_WISE:
        raise DefinitionError(f"{name} takes no argument in prepare.", next_step=f"Write {name}().")
    if name in catalog.AGGREGATES:
        raise refused(f"the aggregate function {name}", "Aggregate is the operator's work: use a measure.")
    if name in catalog.WINDOWS:
        raise refused(f"the window function {name}", "Windows are the operator's work: Aggregate(window=…).")
    if name in catalog.GENERATORS:
        raise generator(name)
    if name not in catalog.ROW_WISE:
        raise DefinitionError(
            f"prepare uses {name}(…), which is not a function of Spark's.",
            next_step=nearest(name, sorted(catalog.ROW_WISE))
            or "Functions that are registered in a session cannot be used: a change of theirs would go unnoticed.",
        )


def _check_columns(tree: exp.Expr, scope: Scope, aliases: frozenset[str], replaced: set[int]) -> list[Edit]:
    from sqlglot import exp

    edits: list[Edit] = []
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        start = parts[0].meta.get("start")
        if start in replaced or _is_lambda_variable(column, parts[0].name):
            continue
        path = scope.resolve([part.name for part in parts])
        if path is None:
            raise unknown_column(".".join(part.name for part in parts), scope, aliases)
        if len(path) < len(parts):
            edits.append(Edit(parts[0].meta["start"], parts[1].meta["start"], ""))
    return edits


def _is_lambda_variable(node: exp.Expr, name: str) -> bool:
    from sqlglot import exp

    parent = node.find_ancestor(exp.Lambda)
    while parent:
        if name.lower() in (variable.name.lower() for variable in parent.expressions):
            return True
        parent = parent.find_ancestor(exp.Lambda)
    return False


def unknown_column(name: str, scope: Scope, aliases: frozenset[str] = frozenset()) -> DefinitionError:
    """The error for a column that the source does not have."""
    first = name.split(".")[0]
    if first.lower() in aliases:
        return DefinitionError(
            f"{first!r} is named in the same SELECT, and is not known to its other expressions.",
            next_step="Repeat the expression, or write prepare as a function with withColumn.",
        )
    if first.startswith("_"):
        return DefinitionError(f"{first!r} is one of Twinstream's own columns and cannot be used in prepare.")
    known = [*scope.columns, *([scope.item] if scope.item else [])]
    looked_for = name.split(".")[1] if first.lower() == scope.table.lower() and "." in name else first
    return DefinitionError(
        f"prepare uses the column {name!r}, which the source does not have.",
        next_step=nearest(looked_for, known) or f"It has: {', '.join(known)}.",
    )


def refused(what: str, next_step: str = "") -> DefinitionError:
    """The error for something that is not row-wise."""
    return DefinitionError(f"prepare is row-wise (filter, map, explode); {what} cannot be used.", next_step=next_step)


def unsteady(name: str) -> DefinitionError:
    """The error for a function that gives another answer when a batch is run again."""
    return DefinitionError(
        f"prepare uses {name}, which {catalog.UNSTEADY[name]}: a batch that is run again would give another result.",
        next_step="Derive the value from the record's own columns.",
    )


def generator(name: str) -> DefinitionError:
    """The error for a function that makes several rows of one, other than the one explode that is allowed."""
    if name in ("explode", "explode_outer"):
        return refused(
            f"{name} in this place",
            "Write one 'lateral view explode(items) t as item' or one 'explode(items) as item' in the SELECT.",
        )
    if name in ("posexplode", "posexplode_outer"):
        return refused(name, "Explode transform(items, (x, i) -> named_struct('position', i, 'item', x)).")
    if name in ("inline", "inline_outer"):
        return refused(name, "Write 'lateral view explode(items) t as item' and select item.* or its fields.")
    if name == "json_tuple":
        return refused(name, "Use get_json_object or from_json.")
    return refused(name)
