"""`prepare` written as a Python function: a pure one, as far as its code can show."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twinstream.errors import DefinitionError
from twinstream.prepare.forms import check_call
from twinstream.prepare.reach import Reached, folder_of, reach

_CLOCK = "it depends on when it runs; batch_time() from twinstream.prepare is the time logged with the batch"
_CHANCE = "it gives another value at each run"
_WORLD = "it depends on the machine, not on the record"
_IMPURE = {
    "random": _CHANCE,
    "secrets": _CHANCE,
    "uuid": _CHANCE,
    "numpy.random": _CHANCE,
    "os.urandom": _CHANCE,
    "builtins.hash": "for texts it gives another value in each process",
    "builtins.id": _CHANCE,
    "time": _CLOCK,
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "os": _WORLD,
    "io": _WORLD,
    "pathlib": _WORLD,
    "socket": _WORLD,
    "subprocess": _WORLD,
    "requests": _WORLD,
    "httpx": _WORLD,
    "urllib.request": _WORLD,
    "http": _WORLD,
    "builtins.open": _WORLD,
    "builtins.input": _WORLD,
    "builtins.globals": _WORLD,
    "builtins.eval": "what it runs cannot be seen",
    "builtins.exec": "what it runs cannot be seen",
    "builtins.__import__": "what it brings in cannot be seen",
    "importlib": "what it brings in cannot be seen",
}
_PURE = ("os.path.", "urllib.parse")


def compile_function(fn: Callable[..., Any], root: Path | None) -> str:
    """Checks a prepare function and all that it reaches in the pipelines folder; gives its canonical text."""
    _check_signature(fn)
    canonical, reached = reach(fn, root or folder_of(fn))
    for one in reached:
        _check_statements(one)
        for name in sorted(one.outside):
            _check_outside(name, one.label)
    return canonical


def _check_signature(fn: Callable[..., Any]) -> None:
    label = getattr(fn, "__qualname__", type(fn).__name__)
    if not callable(fn):
        raise DefinitionError(f"prepare is a {type(fn).__name__}.", next_step="Give SQL or a function of rows.")
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn):
        raise DefinitionError(f"prepare's function {label} yields or waits.", next_step="Return the rows.")
    if isinstance(fn, functools.partial):
        return
    try:
        inspect.signature(fn).bind(None)
    except TypeError:
        raise DefinitionError(
            f"prepare's function {label} cannot be called with the rows alone.",
            next_step="Write it as def prepare(rows): return rows.where(…).select(…).",
        ) from None
    except ValueError:
        return


def _check_statements(one: Reached) -> None:
    for node in ast.walk(one.node):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            word = "global" if isinstance(node, ast.Global) else "nonlocal"
            raise _impure(f"'{word} {', '.join(node.names)}'", one.label, "what it gives depends on earlier calls")


def _check_outside(name: str, label: str) -> None:
    if name.startswith(_PURE):
        return
    for impure, reason in _IMPURE.items():
        if name == impure or name.startswith(f"{impure}."):
            raise _impure(name.removeprefix("builtins."), label, reason)
    if name.startswith("pyspark.sql.") and ".functions." in name:
        check_call(name.rsplit(".", 1)[1].lower())


def _impure(what: str, label: str, reason: str) -> DefinitionError:
    return DefinitionError(
        f"prepare is not pure: {label} uses {what}, and {reason}.",
        next_step="Derive the rows from the record's own columns and from constants.",
    )
