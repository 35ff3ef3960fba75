"""Every failpoint of the engine, found in its source, and calls that are durable but have none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[2] / "include" / "twinstream"
ELSEWHERE = ("generator", "cli", "shipping")
"""Rooms that write nothing the protocol relies on: made-up events, what a person asks to be written to a file, and the
engine's code for executors, named by its content."""

DURABLE_CALLS = {
    "create_write_transaction", "create_checkpoint", "write_table", "parquet", "rmtree", "unlink", "replace", "rename",
    "copyfile", "create", "save", "cleanup_metadata", "vacuum",
}  # fmt: skip


def steps() -> dict[str, list[str]]:
    """Names of all durable steps with the files they stand in."""
    found: dict[str, list[str]] = {}
    for file, tree in _trees():
        for node in ast.walk(tree):
            name = _step(node)
            if name:
                found.setdefault(name, []).append(file)
    return found


def points() -> list[str]:
    """All failpoints."""
    return [f"{step}:{side}" for step in sorted(steps()) for side in ("before", "after")]


def unguarded() -> list[str]:
    """Durable calls outside any `with durable(…)` or ledger transaction."""
    found = []
    for file, tree in _trees():
        guarded: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.With) and any(_is_guard(item.context_expr) for item in node.items):
                guarded |= {id(inner) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if id(node) not in guarded and _is_durable(node):
                found.append(f"{file}:{node.lineno} {ast.unparse(node.func)}")  # type: ignore[attr-defined]
    return found


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ENGINE.rglob("*.py")):
        name = path.relative_to(ENGINE).as_posix()
        if not name.startswith(ELSEWHERE) and "migrations" not in name:
            yield name, ast.parse(path.read_text())


def _step(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
        return None
    name = str(node.args[0].value)
    if isinstance(node.func, ast.Name) and node.func.id == "durable":
        return name
    if isinstance(node.func, ast.Attribute) and node.func.attr == "write" and _of_database(node.func.value):
        return f"ledger.{name}"
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("_write", "_swap") and name.startswith("sink."):
        return name
    return None


def _of_database(node: ast.AST) -> bool:
    return ast.unparse(node) in ("self", "self._db", "database", "ledger.database", "self.ledger.database")


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (
        ast.unparse(node.func) == "durable" or (_step(node) is not None) or ast.unparse(node.func).endswith(".write")
    )


def _is_durable(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, ast.unparse(node.func.value)
    if name == "parquet":
        return owner.endswith((".write", ")")) and ".write" in owner
    if name == "unlink" and owner == "temporary":
        return False  # a file that nothing names yet
    if name == "replace":
        return owner in ("temporary", "os")
    if name == "create":
        return owner == "DeltaTable"
    return name in DURABLE_CALLS
