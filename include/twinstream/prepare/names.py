"""Which names a piece of Python code takes from outside itself, and how it goes on from each by attributes."""

from __future__ import annotations

import ast
import dis
from dataclasses import dataclass
from types import CodeType

from twinstream.errors import DefinitionError

_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")


@dataclass(frozen=True)
class Import:
    """An import within a function: `alias` stands for `module`, or for `name` of it."""

    alias: str
    module: str
    level: int
    name: str | None = None


def names_taken(node: ast.AST, label: str) -> set[str]:
    """The names that `node` (without annotations) looks up outside its own scopes, as Python's compiler sees it."""
    body: ast.Module | ast.Expression
    body = ast.Expression(node) if isinstance(node, ast.expr) else ast.Module([node], [])  # type: ignore[list-item]
    try:
        code = compile(body, "<definition>", "eval" if isinstance(body, ast.Expression) else "exec")
    except SyntaxError as error:
        raise DefinitionError(f"The code of {label} cannot be looked at on its own: {error.msg}.") from error
    taken: set[str] = set()
    codes = [code]
    while codes:
        code = codes.pop()
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        taken |= {str(step.argval) for step in dis.get_instructions(code) if step.opname in _GLOBAL}
    return taken - _class_made(node)


def _class_made(node: ast.AST) -> set[str]:
    """Names that Python itself sets in a class body."""
    made = {"__name__", "__module__", "__qualname__"}
    return made if any(isinstance(inner, ast.ClassDef) for inner in ast.walk(node)) else set()


def chains(node: ast.AST) -> dict[str, set[tuple[str, ...]]]:
    """How each name goes on: `F.col(x)` gives F → {("col",)} and x → {()}."""
    found: dict[str, set[tuple[str, ...]]] = {}
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        attributes: list[str] = []
        inner = current
        while isinstance(inner, ast.Attribute):
            attributes.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            found.setdefault(inner.id, set()).add(tuple(attributes))
        else:
            pending += ast.iter_child_nodes(inner)
    return found


def imports(node: ast.AST) -> list[Import]:
    """The imports within `node`."""
    found: list[Import] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            for alias in inner.names:
                module = alias.name if alias.asname else alias.name.split(".")[0]
                found.append(Import(alias.asname or module, module, 0))
        elif isinstance(inner, ast.ImportFrom):
            found += [Import(a.asname or a.name, inner.module or "", inner.level, a.name) for a in inner.names]
    return found
