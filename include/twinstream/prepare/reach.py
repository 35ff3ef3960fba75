"""Everything in the pipelines folder that a function's result depends on: the functions, classes and constants it uses.

Two definitions are the same when these are the same, wherever the folder lies and however its files are called. What is
outside the folder counts by its name only: libraries have versions of their own.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from twinstream.errors import DefinitionError
from twinstream.prepare.names import Import, chains, imports, names_taken
from twinstream.prepare.syntax import class_node, dump, function_nodes, stripped
from twinstream.prepare.values import Canonical, canonical_constant


@dataclass
class Reached:
    """A function or class that is part of the definition: its tree, and the names outside the folder that it uses."""

    label: str
    node: ast.AST
    outside: set[str] = field(default_factory=set)


def canonical_callable(fn: Callable[..., Any], root: Path) -> str:
    """The function and all that it reaches inside `root`, as text; DefinitionError for what cannot be put into one."""
    return reach(fn, root)[0]


def reach(fn: Callable[..., Any], root: Path) -> tuple[str, list[Reached]]:
    """The canonical text of a function, and each function and class that went into it."""
    walk = _Walk(root)
    label = getattr(fn, "__qualname__", type(fn).__name__)
    start = walk.start(fn, label)
    return json.dumps([start, walk.entries], ensure_ascii=True), walk.reached


def folder_of(fn: Callable[..., Any]) -> Path:
    """The folder of the file in which the function is written."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None and isinstance(fn, functools.partial):
        return folder_of(fn.func)
    return Path(code.co_filename if code else ".").resolve().parent


class _Walk:
    """One walk over all that is reached; each function and class is an entry and is met once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.entries: list[Canonical] = []
        self.reached: list[Reached] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[object] = []

    def start(self, fn: object, label: str) -> Canonical:
        """The definition's own function counts by its code, wherever it is written."""
        target = inspect.unwrap(fn) if callable(fn) else fn
        if isinstance(target, FunctionType) and target is fn:
            return self.function(target, label)
        if isinstance(fn, (FunctionType, functools.partial)) or hasattr(fn, "__wrapped__"):
            return self.value(fn, label, {})
        raise _refused(label, fn)

    def value(self, value: object, label: str, home: Mapping[str, object]) -> Canonical:
        """The canonical form of whatever a name stands for; `home` are the globals of the code that uses it."""
        constant = canonical_constant(value)
        if constant is not None:
            return constant
        if isinstance(value, Enum):
            return ["enum", self.value(type(value), label, home), value.name]
        kind = type(value)
        if kind in (tuple, list) and isinstance(value, (tuple, list)):
            return [kind.__name__, *(self.value(item, label, home) for item in value)]
        if kind in (set, frozenset) and isinstance(value, (set, frozenset)):
            return [kind.__name__, *sorted((self.value(item, label, home) for item in value), key=json.dumps)]
        if kind is dict and isinstance(value, dict):
            return ["dict", *([self.value(k, label, home), self.value(v, label, home)] for k, v in value.items())]
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return ["partial", *(self.value(part, label, home) for part in parts)]
        if isinstance(value, ModuleType):
            return self._module(value, label)
        if isinstance(value, type):
            return self._class(value, label, home)
        if isinstance(value, FunctionType):
            return self._function(value, label)
        if isinstance(value, MethodType) and isinstance(value.__self__, type):
            return ["method", self.value(value.__self__, label, home), value.__name__]
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, (ModuleType, type(None), type)):
            return ["outside", _qualified(value)]
        if type(getattr(value, "__self__", None)).__module__ == "random":
            return ["outside", f"random.{getattr(value, '__name__', '')}"]  # methods of one hidden generator
        if hasattr(value, "__wrapped__") and not isinstance(value, MethodType):
            return ["wrapped", _qualified(kind), self.value(value.__wrapped__, label, home)]
        if kind.__module__ in ("typing", "types"):
            return ["typing", repr(value)]
        raise _refused(label, value)

    def function(self, function: FunctionType, label: str) -> Canonical:
        """A function by its code, the values of its defaults, and what its names stand for."""
        number = self._numbers.get(id(function))
        if number is not None:
            return ["code", number]
        node = self._node(function.__code__, label)
        number, entry = self._entry(function)
        taken = stripped(node)
        reached = self._reached(label, taken)
        closure = _closure(function, label)
        names = self._names(_without_defaults(taken), closure, function.__globals__, reached)
        defaults = [function.__defaults__ or (), function.__kwdefaults__ or {}]
        entry += [
            dump(taken),
            [self.value(default, f"{label}'s default", function.__globals__) for default in defaults],
            names,
        ]
        return ["code", number]

    def _function(self, function: FunctionType, label: str) -> Canonical:
        if self._inside(Path(function.__code__.co_filename)):
            return self.function(function, label)
        inner = inspect.unwrap(function)
        if inner is not function and isinstance(inner, FunctionType) and self._inside(Path(inner.__code__.co_filename)):
            # A wrapper from elsewhere (a UDF, say) takes over the name of what it wraps, so its code names it.
            return ["wrapped", function.__code__.co_qualname, self.function(inner, label)]
        if "<" in function.__qualname__:
            raise _refused(label, function)
        return ["outside", _qualified(function)]

    def _class(self, cls: type, label: str, home: Mapping[str, object]) -> Canonical:
        file = _class_file(cls, home)
        if file is None or not self._inside(file):
            return ["outside", _qualified(cls)]
        number = self._numbers.get(id(cls))
        if number is not None:
            return ["code", number]
        node = class_node(file, cls.__qualname__)
        if node is None:
            raise _refused(label, cls)
        number, entry = self._entry(cls)
        taken = stripped(node)
        reached = self._reached(label, taken)
        scope = home if home.get("__name__") == cls.__module__ else vars(sys.modules[cls.__module__])
        own = {cls.__name__, *(name for name in vars(cls) if name not in scope)}
        entry += [dump(taken), self._names(taken, {}, scope, reached, own)]
        return ["code", number]

    def _module(self, module: ModuleType, label: str) -> Canonical:
        if self._inside_module(module):
            raise DefinitionError(
                f"{label} uses the whole module {module.__name__!r} of the pipelines folder, which cannot be hashed.",
                next_step="Name what it uses of it: module.function or module.CONSTANT.",
            )
        return ["outside", module.__name__]

    def _names(
        self,
        node: ast.AST,
        closure: Mapping[str, object],
        scope: Mapping[str, object],
        reached: Reached,
        own: frozenset[str] | set[str] = frozenset(),
    ) -> Canonical:
        """What each name that the code takes from outside stands for."""
        found: dict[str, Canonical] = {}
        uses = chains(node)
        for name in sorted(names_taken(node, reached.label) - own):
            if name in closure:
                value = closure[name]
            elif name in ("__file__", "__path__", "__spec__", "__loader__"):
                raise DefinitionError(f"{reached.label} uses {name}, which depends on where the pipelines folder lies.")
            elif name in scope:
                value = scope[name]
            elif hasattr(builtins, name):
                found[name] = ["outside", f"builtins.{name}"]
                reached.outside.add(f"builtins.{name}")
                continue
            elif name == getattr(node, "name", None):
                continue
            else:
                raise DefinitionError(f"{reached.label} uses the name {name!r}, which is not defined.")
            for chain in sorted(uses.get(name, {()})):
                self._follow(name, value, chain, scope, reached, found)
        for item in imports(node):
            for chain in sorted(uses.get(item.alias, {()})):
                self._follow_import(item, chain, scope, reached, found)
        return [[name, found[name]] for name in sorted(found)]

    def _follow(
        self,
        name: str,
        value: object,
        chain: tuple[str, ...],
        scope: Mapping[str, object],
        reached: Reached,
        found: dict[str, Canonical],
    ) -> None:
        """Goes from modules of the folder to what is used of them; the rest of a chain is in the tree already."""
        rest = list(chain)
        while isinstance(value, ModuleType) and rest and self._inside_module(value):
            name += f".{rest[0]}"
            scope = vars(value)
            try:
                value = getattr(value, rest.pop(0))
            except AttributeError:
                raise DefinitionError(f"{reached.label} uses {name}, which is not defined.") from None
        if isinstance(value, ModuleType) and not self._inside_module(value):
            found[name] = ["outside", value.__name__]
            reached.outside.add(".".join([value.__name__, *rest]))
            return
        canonical = self.value(value, f"{name} (used by {reached.label})", scope)
        found[name] = canonical
        if canonical[0] == "outside":
            reached.outside.add(".".join([canonical[1], *rest]))

    def _follow_import(
        self,
        item: Import,
        chain: tuple[str, ...],
        scope: Mapping[str, object],
        reached: Reached,
        found: dict[str, Canonical],
    ) -> None:
        module = item.module
        if item.level:
            module = importlib.util.resolve_name("." * item.level + module, str(scope.get("__package__") or ""))
        if not self._inside_name(module):
            name = ".".join([module, *([item.name] if item.name else [])])
            found[item.alias] = ["outside", name]
            reached.outside.add(".".join([name, *chain]))
            return
        value: object = importlib.import_module(module)
        if item.name:
            value = getattr(value, item.name, None) or importlib.import_module(f"{module}.{item.name}")
        self._follow(item.alias, value, chain, scope, reached, found)

    def _node(self, code: CodeType, label: str) -> ast.AST:
        nodes = function_nodes(Path(code.co_filename), code)
        if not nodes:
            raise DefinitionError(
                f"The source of {label} cannot be found, so a change of it would go unnoticed.",
                next_step="Write it in a file of the pipelines folder.",
            )
        if len({dump(stripped(node)) for node in nodes}) > 1:
            raise DefinitionError(
                f"Several functions could be {label} in line {code.co_firstlineno}.",
                next_step="Give each a line of its own.",
            )
        return nodes[0]

    def _entry(self, thing: object) -> tuple[int, Canonical]:
        number = len(self.entries)
        self._numbers[id(thing)] = number
        self._alive.append(thing)
        self.entries.append([])
        return number, self.entries[number]

    def _reached(self, label: str, node: ast.AST) -> Reached:
        self.reached.append(Reached(label, node))
        return self.reached[-1]

    def _inside(self, file: Path) -> bool:
        return file.resolve().is_relative_to(self.root)

    def _inside_module(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), None)
        return file is not None and self._inside(Path(file))

    def _inside_name(self, name: str) -> bool:
        """Is the module of that name in the folder? Without importing it when it is not: Spark takes a second."""
        module = sys.modules.get(name)
        if module is not None:
            return self._inside_module(module)
        try:
            spec = importlib.util.find_spec(name.split(".")[0])
        except (ImportError, ValueError):
            return False
        places = [spec.origin, *(spec.submodule_search_locations or [])] if spec else []
        return any(place and self._inside(Path(place)) for place in places)


def _without_defaults(node: ast.AST) -> ast.AST:
    """The function with its own defaults blanked: their values count, not the names they were once made of."""
    arguments = getattr(node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return node
    blank = ast.arguments(
        posonlyargs=arguments.posonlyargs,
        args=arguments.args,
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=[default and ast.Constant(None) for default in arguments.kw_defaults],
        kwarg=arguments.kwarg,
        defaults=[ast.Constant(None) for _ in arguments.defaults],
    )
    fields = {name: blank if name == "args" else value for name, value in ast.iter_fields(node)}
    return ast.fix_missing_locations(ast.copy_location(type(node)(**fields), node))


def _closure(function: FunctionType, label: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            raise DefinitionError(f"{label} uses the name {name!r}, which has no value yet.") from None
    return values


def _class_file(cls: type, home: Mapping[str, object]) -> Path | None:
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if home.get("__name__") == cls.__module__:
        file = home.get("__file__") or file
    return Path(str(file)) if file else None


def _qualified(thing: Any) -> str:
    module = getattr(thing, "__module__", None) or "builtins"
    return f"{module}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _refused(label: str, value: object) -> DefinitionError:
    what = "a function without a name of its own" if isinstance(value, FunctionType) else f"a {_qualified(type(value))}"
    return DefinitionError(
        f"{label} is {what}, which cannot be part of the definition's hash: a change of it would go unnoticed.",
        next_step="Use functions, classes and plain constants (numbers, texts, dates, lists, dicts) of that folder.",
    )
