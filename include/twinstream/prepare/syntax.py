"""Python code as a tree that says what it does and nothing of how it is written.

Comments and layout are not in Python's own tree; docstrings and annotations are taken out here. The dump is our own:
Python's has other fields in each minor version, which would make every definition look changed after an upgrade.
"""

from __future__ import annotations

import ast
import copy
import tokenize
from functools import lru_cache
from pathlib import Path
from types import CodeType

_SKIPPED = ("ctx", "kind", "type_comment", "type_params", "type_ignores")


@lru_cache(maxsize=256)
def _parse(path: Path, stamp: tuple[int, int]) -> ast.Module:
    with tokenize.open(str(path)) as file:
        return ast.parse(file.read())


def module_tree(path: Path) -> ast.Module | None:
    """The tree of a Python file, or None when it cannot be read."""
    try:
        status = path.stat()
        return _parse(path, (status.st_mtime_ns, status.st_size))
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
        return None


def function_nodes(path: Path, code: CodeType) -> list[ast.AST]:
    """What in the file `code` may have been made of; more than one only for lambdas that share a line."""
    tree = module_tree(path)
    if tree is None:
        return []
    if code.co_name == "<lambda>":
        lambdas = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
        return _likeliest(lambdas, code)
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name == code.co_name
        and min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno
    ]


def _likeliest(lambdas: list[ast.Lambda], code: CodeType) -> list[ast.AST]:
    """Those lambdas of one line that share most places in the text with the compiled code."""
    places = set(code.co_positions())

    def shared(node: ast.Lambda) -> int:
        compiled = compile(ast.Expression(node), "<lambda>", "eval")
        inner = next(const for const in compiled.co_consts if isinstance(const, CodeType))
        return len(places & set(inner.co_positions()))

    best = max(map(shared, lambdas), default=0)
    return [node for node in lambdas if shared(node) == best]


def class_node(path: Path, qualified_name: str) -> ast.ClassDef | None:
    """The class of that name in the file."""
    node: ast.AST | None = module_tree(path)
    for name in qualified_name.split("."):
        body = getattr(node, "body", [])
        node = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == name), None)
    return node if isinstance(node, ast.ClassDef) else None


def stripped(node: ast.AST) -> ast.AST:
    """A copy of the node without what does nothing: docstrings, other bare constants, annotations."""
    return ast.fix_missing_locations(_Strip().visit(copy.deepcopy(node)))  # type: ignore[no-any-return]


class _Strip(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """In a class an annotation alone makes a field: the name stays, the type goes."""
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                statement.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if isinstance(node.annotation, ast.Constant) and node.annotation.value is None:
            return self.generic_visit(node)
        if node.value is None:
            return None
        return self.generic_visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node


def dump(node: object) -> str:
    """The tree as text, without places, empty fields, and whatever one version of Python has and another has not."""
    if isinstance(node, list):
        return "[" + " ".join(map(dump, node)) + "]"
    if isinstance(node, ast.Constant):
        return f"({type(node.value).__name__} {node.value!r})"
    if isinstance(node, ast.JoinedStr):
        return f"(JoinedStr {dump(_joined(node.values))})"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [
        f"{name}={dump(value)}"
        for name, value in ast.iter_fields(node)
        if name not in _SKIPPED and value is not None and value != []
    ]
    return f"({' '.join([type(node).__name__, *fields])})"


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string with neighbouring texts as one: versions of Python cut them differently."""
    parts: list[ast.expr] = []
    for value in values:
        last = parts[-1] if parts else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            parts[-1] = ast.Constant(str(last.value) + str(value.value))
        elif not (isinstance(value, ast.Constant) and value.value == ""):
            parts.append(value)
    return parts
