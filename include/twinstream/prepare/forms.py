"""What can be told of a Spark Column from the way it prints, which is all that its public interface shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError
from twinstream.prepare import catalog
from twinstream.prepare.expressions import check_function, refused, unsteady

if TYPE_CHECKING:
    from pyspark.sql import Column

_LITERAL = re.compile(r"""'(?:\\.|''|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_CALL = re.compile(r"(?<![\w.`])([A-Za-z_]\w*)\s*\(")
_OWN = re.compile(r"(?<![\w.`])`?(_[A-Za-z]\w*)`?(?!\w|\s*\()")
_OVER = re.compile(r"\b(OVER|WindowExpression)\s*\(", re.IGNORECASE)
_QUERY = re.compile(r"\(\s*select\b", re.IGNORECASE)
_STAR = re.compile(r"unresolvedstar\((.*)\)", re.DOTALL)  # how Spark Connect prints it
_PATH = re.compile(r"\w+(\.\w+)*")
_BARE = re.compile(
    rf"(?<![\w.`])({'|'.join((*catalog.BARE_CLOCK, 'current_time', 'current_user', 'session_user'))})(?![\w`])",
    re.IGNORECASE,
)
# Part of how a Python function that is called from Spark prints its arguments.
_NOISE = ("Some", "List", "None", "Origin", "UnresolvedAttribute")


def form(column: Column) -> str:
    """The Column as text, without the frame that Python puts around it."""
    return str(column).removeprefix("Column<'").removesuffix("'>")


def star(column: Column) -> str | None:
    """For all fields of a struct its path, for all columns an empty text; None for everything else."""
    text = form(column)
    remote = _STAR.fullmatch(text)
    if remote:
        text = remote.group(1) or "*"
    if text != "*" and not text.endswith(".*"):
        return None
    while text.endswith("*"):
        text = text.removesuffix("*").removesuffix(".")
    return text


def is_path(column: Column, names: Iterable[str]) -> bool:
    """A column as it stands, or a field of one, perhaps under another name: nothing that can fail."""
    text = form(column).split(" AS ")[0].lower().replace("`", "")
    lowered = [name.lower() for name in names]
    return text in lowered or (text.split(".")[0] in lowered and _PATH.fullmatch(text) is not None)


def check_column(column: Column) -> None:
    """Refuses what is not row-wise, not deterministic, or reaches for Twinstream's own columns."""
    text = form(column)
    if not type(column).__module__.startswith("pyspark.sql.connect"):
        text = _LITERAL.sub("''", text)  # Spark Connect prints texts without quotes: there they cannot be told apart
    if _OVER.search(text):
        raise refused("window functions")
    if _QUERY.search(text):
        raise refused("subqueries")
    for match in (*_CALL.finditer(text), *_BARE.finditer(text)):
        if match.group(1) not in _NOISE:
            check_call(match.group(1).lower())
    for match in _OWN.finditer(text):
        if match.group(1) != "_batch_time":
            raise own_column(match.group(1))


def check_call(name: str) -> None:
    """Refuses a function by name; a name that Spark does not have may be that of a Python function."""
    if name in catalog.CLOCK and name not in catalog.ROW_WISE:
        raise DefinitionError(
            f"prepare uses {name}, which depends on when it runs: a batch that is run again would give another result.",
            next_step="Use batch_time() from twinstream.prepare: the time that was logged with the batch.",
        )
    if name in catalog.UNSTEADY:
        raise unsteady(name)
    if name in catalog.GENERATORS:
        raise generator_in_function(name)
    if name in catalog.AGGREGATES or name in catalog.WINDOWS:
        check_function(name)


def generator_in_function(name: str) -> DefinitionError:
    """The error for an explode in a function, where the rows of one record could not be told apart any more."""
    return refused(f"{name} in a function", "Write the explode as SQL: 'lateral view explode(items) t as item'.")


def own_column(name: str) -> DefinitionError:
    """The error for the use of a hidden column."""
    return DefinitionError(f"{name!r} is one of Twinstream's own columns and cannot be used in prepare.")
