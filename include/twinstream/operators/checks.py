"""Refusals that keys and measures share, each one sentence and what to do instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from twinstream.errors import DefinitionError
from twinstream.operators.sqltypes import collation, unordered_part

WINDOW_COLUMNS = ("window_start", "window_end")


def known_column(name: str, columns: Mapping[str, str | None], user: str) -> None:
    """Refuse a column that the prepared rows do not have, naming the nearest that they do."""
    if name in columns:
        return
    lowered = {column.lower(): column for column in columns}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    there = ", ".join(columns) or "none"
    next_step = f'Did you mean "{lowered[near[0]]}"?' if near else f"The columns are: {there}."
    raise DefinitionError(f'{user} uses the column "{name}", which the prepared rows do not have.', next_step=next_step)


def output_names(names: Iterable[str], owner: str) -> None:
    """Refuse result columns that are reserved, empty or there twice; Spark and Delta do not tell case apart."""
    seen: dict[str, str] = {}
    for name in names:
        if not name.strip():
            raise DefinitionError(f"{owner} has a result column without a name.", next_step="Name it.")
        if name.startswith("_"):
            raise DefinitionError(
                f'{owner} names a result column "{name}": names that start with an underscore are reserved.',
                next_step=f'Rename it, for example to "{name.lstrip("_") or "value"}".',
            )
        if name.lower() in seen:
            raise DefinitionError(
                f'{owner} has two result columns named "{name}"'
                + (f' and "{seen[name.lower()]}", which differ only in case.' if name != seen[name.lower()] else "."),
                next_step="Give each result column a name of its own.",
            )
        seen[name.lower()] = name


def not_window_names(names: Iterable[str], owner: str) -> None:
    """Refuse names that the window's own columns have."""
    for name in names:
        if name.lower() in WINDOW_COLUMNS:
            raise DefinitionError(
                f'{owner} names a result column "{name}", which is the name of a window\'s own column.',
                next_step="Rename it in prepare or in measures.",
            )


def comparable(name: str, type_: str, user: str) -> None:
    """Refuse a type whose values cannot be compared, or where values that differ compare as equal."""
    part = unordered_part(type_)
    if part == "void":
        raise DefinitionError(
            f'{user} uses "{name}", which is always null and has no type.',
            next_step=f"Give it one in prepare, for example cast(null as string) as {name}.",
        )
    if part is not None:
        raise DefinitionError(
            f'{user} uses "{name}" of type {type_}: a {part} cannot be compared.',
            next_step=f"Select the entries you need, or to_json({name}), as a column of its own in prepare.",
        )
    folding = collation(type_)
    if folding is not None:
        raise DefinitionError(
            f'{user} uses "{name}" with the collation {folding}: strings that differ would count as equal.',
            next_step=f"Normalise it in prepare, for example lower({name}), as a plain string.",
        )
