from __future__ import annotations

import importlib
import re
import sys
import textwrap

import pytest

from twinstream.definition import canonical_callable, canonical_sql, hash_definition
from twinstream.errors import DefinitionError

PIPELINE = """
    '''A pipeline.'''
    from shared import RATE, enrich
    import shared

    LIMIT = 10

    def prepare(rows):
        '''Cleans.'''
        # a comment
        low = rows.amount > LIMIT
        return enrich(rows.where(low), shared.FACTOR)
"""
SHARED = """
    from decimal import Decimal
    RATE = Decimal("1.20")
    FACTOR = 3
    NAMES = {"a": (1, 2.5), "b": [None, True]}

    def enrich(rows, factor=FACTOR):
        return rows.withColumn("x", rows.amount * factor * rate())

    def rate():
        return RATE if NAMES else None
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Writes modules into a folder of pipelines and gives the canonical text of one of their functions."""
    root = tmp_path / "pipelines"
    root.mkdir()

    def canonical(name="prepare", where=root, module="pipeline", **files):
        for file, text in files.items():
            path = where / f"{file}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        with monkeypatch.context() as inner:
            inner.syspath_prepend(str(where))
            for known in [m for m, v in sys.modules.items() if str(tmp_path) in str(getattr(v, "__file__", ""))]:
                del sys.modules[known]
            function = getattr(importlib.import_module(module), name)
            return canonical_callable(function, where)

    yield canonical
    for known in [m for m, v in sys.modules.items() if str(tmp_path) in str(getattr(v, "__file__", ""))]:
        del sys.modules[known]


def test_comments_layout_docstrings_and_annotations_do_not_count(folder):
    base = folder(pipeline=PIPELINE, shared=SHARED)
    other = """
        from __future__ import annotations
        import shared
        from shared import (enrich,
                            RATE)
        LIMIT: int = 5 * 2


        def prepare(rows: "DataFrame") -> "DataFrame":
            low: object = (
                rows.amount
                > LIMIT
            )
            return enrich(rows.where(low), shared.FACTOR)  # done
    """
    assert folder(pipeline=other, shared="'''Docs'''\n" + textwrap.dedent(SHARED)) == base


def test_the_folder_may_move_and_the_file_may_be_renamed(folder, tmp_path):
    base = folder(pipeline=PIPELINE, shared=SHARED)
    assert folder(where=tmp_path / "elsewhere" / "deep", pipeline=PIPELINE, shared=SHARED) == base
    assert folder(module="renamed", renamed=PIPELINE, shared=SHARED) == base


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('Decimal("1.20")', 'Decimal("1.21")'),
        ('Decimal("1.20")', "1.2"),
        ("FACTOR = 3", "FACTOR = 3.0"),
        ("(1, 2.5)", "[1, 2.5]"),
        ("(1, 2.5)", "(1, 2.25)"),
        ("None, True", "None, 1"),
        ("amount * factor", "amount + factor"),
        ("RATE if NAMES", "RATE if not NAMES"),
        ("factor=FACTOR", "factor=FACTOR + 1"),
    ],
)
def test_a_change_in_what_a_helper_of_another_file_reaches_counts(folder, old, new):
    base = folder(pipeline=PIPELINE, shared=SHARED)
    assert old in SHARED
    assert folder(pipeline=PIPELINE, shared=SHARED.replace(old, new)) != base


def test_a_change_of_what_is_not_reached_does_not_count(folder):
    base = folder(pipeline=PIPELINE, shared=SHARED)
    more = textwrap.dedent(SHARED) + "UNUSED = object()\ndef other(): return UNUSED\n"
    assert folder(pipeline=PIPELINE, shared=more) == base


def test_a_change_of_the_function_itself_counts(folder):
    base = folder(pipeline=PIPELINE, shared=SHARED)
    assert folder(pipeline=PIPELINE.replace("> LIMIT", ">= LIMIT"), shared=SHARED) != base
    assert folder(pipeline=PIPELINE.replace("LIMIT = 10", "LIMIT = 11"), shared=SHARED) != base
    assert folder(pipeline=PIPELINE.replace("LIMIT = 10", "LIMIT = 10.0"), shared=SHARED) != base


def test_lambdas_nested_functions_and_closures(folder):
    source = """
        def make(limit, *, word="x"):
            def prepare(rows):
                def inner(column):
                    return column > limit
                return rows.where(inner(rows.amount)).where(lambda: word)
            return prepare

        prepare = make({limit})
        first, second = lambda rows: rows.where("a > 1"), lambda rows: rows.where("a > {second}")
        loop = [lambda rows, n=n: n for n in range(3)]
        first_of_loop, last_of_loop = loop[0], loop[2]
    """

    def texts(limit, second):
        names = ("prepare", "first", "second", "first_of_loop", "last_of_loop")
        return [folder(name, pipeline=source.format(limit=limit, second=second)) for name in names]

    base = texts(1, 2)
    assert len(set(base)) == 5
    assert texts(2, 2)[0] != base[0]
    assert texts(2, 2)[1:] == base[1:]
    assert texts(1, 3)[1] == base[1]
    assert texts(1, 3)[2] != base[2]


def test_classes_enums_partials_and_recursion(folder):
    source = """
        import enum, functools, re, datetime
        from dataclasses import dataclass

        class Level(enum.Enum):
            LOW = {low}
            HIGH = 2

        @dataclass
        class Rule:
            "What counts."
            name: str
            limit: int = {limit}
            def holds(self, value):
                return value > self.limit * depth({depth})

        SINCE = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)
        PATTERN = re.compile("a+", re.I)

        @functools.lru_cache
        def depth(n):
            return depth(n - 1) + 1 if n else 0

        def clean(rows, column):
            return rows.where(Rule(column).holds(Level.LOW.value)).where(SINCE).where(PATTERN)

        prepare = functools.partial(clean, column="{column}")
    """

    def text(low=1, limit=5, depth=3, column="a"):
        return folder(pipeline=source.format(low=low, limit=limit, depth=depth, column=column))

    texts = [text(), text(low=7), text(limit=6), text(depth=4), text(column="b")]
    assert len(set(texts)) == 5
    assert (
        folder(
            pipeline=source.replace('"What counts."', "'''Other words.'''").format(low=1, limit=5, depth=3, column="a")
        )
        == texts[0]
    )


def test_imports_within_the_function(folder):
    source = """
        def prepare(rows):
            from math import sqrt as root
            import helpers.rates as rates
            from helpers import deep
            return rows.where(root(rates.RATE)).where(deep.twice(2))
    """
    rates, deep = "RATE = {}", "def twice(x): return x * {}"

    def text(rate=1, times=2, source=source):
        return folder(
            pipeline=source,
            **{"helpers/__init__": "", "helpers/rates": rates.format(rate), "helpers/deep": deep.format(times)},
        )

    assert len({text(), text(rate=2), text(times=3), text(source=source.replace("math", "cmath"))}) == 4
    assert text() == text()


def test_a_package_of_the_folder_is_followed_through_relative_imports(folder):
    files = {"team/__init__": "", "team/shared": "LIMIT = 1"}
    source = "from . import shared\ndef prepare(rows):\n    return rows.where(shared.LIMIT)\n"
    late = "def prepare(rows):\n    from .shared import LIMIT\n    return rows.where(LIMIT)\n"
    for text in (source, late):
        one = folder(module="team.pipeline", **files, **{"team/pipeline": text})
        assert one != folder(module="team.pipeline", **{**files, "team/shared": "LIMIT = 2"}, **{"team/pipeline": text})


def test_what_is_outside_the_folder_counts_by_its_name(folder):
    text = folder(
        pipeline="import math\nfrom json import dumps\ndef prepare(rows): return dumps(math.floor(len(rows)))"
    )
    assert '"json.dumps"' in text
    assert '"math"' in text
    assert '"builtins.len"' in text


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("class Thing: pass\nX = Thing()", "pipeline.Thing"),
        ("X = open(__file__)", "TextIOWrapper"),
        ("import string\nX = string.Formatter().format", "method"),
        ("X = eval('lambda: 1')", "a function without a name"),
        ("import shared as X", "whole module 'shared'"),
        ("from collections import Counter\nX = Counter()", "Counter"),
        ("X = __file__; X = [object()]", "builtins.object"),
        ("X = (n for n in [1])", "generator"),
    ],
)
def test_what_cannot_be_hashed_is_refused_by_name(folder, setup, words):
    with pytest.raises(DefinitionError) as error:
        folder(pipeline=f"{setup}\ndef prepare(rows): return rows.where(X)", shared="")
    assert words in str(error.value)
    assert "X" in str(error.value) or "shared" in str(error.value)


def test_other_things_that_have_no_stable_meaning_are_refused(folder):
    for source, words in [
        ("def prepare(rows): return missing", "'missing', which is not defined"),
        ("import shared\ndef prepare(rows): return shared.missing", "shared.missing, which is not defined"),
        ("def prepare(rows): return __file__", "where the pipelines folder lies"),
        ("class Callable:\n    def __call__(self, rows): return rows\nprepare = Callable()", "Callable"),
        ("class A:\n    def m(self, rows): return rows\nprepare = A().m", "method"),
        ("prepare = len", "builtin"),
    ]:
        with pytest.raises(DefinitionError) as error:
            folder(pipeline=source, shared="")
        assert words in str(error.value)


def test_the_text_is_the_same_in_every_process_and_every_version_of_python(folder):
    """The hash below was taken with Python 3.11, and seen with 3.12 and 3.13."""
    source = """
        from shared import RATE, one, two, three, four, five
        def prepare(rows, *, n=1, **more):
            five(four(three(two(one(rows)))))
            words = [f"a{x!r:>{n}}" "b" f"{x}c" for x in range(n) if (y := x) and not -x]
            match n:
                case [1, *rest] | {"k": rest}: pass
                case _: ...
            try:
                with rows as r, r: del words[1:2, ::3]
            except* ValueError as error: raise KeyError from error
            return rows[...] @ (lambda a, /, b=RATE, *c: b"x" + 1j)
    """
    helpers = [f"def {name}(x): return x + {n}" for n, name in enumerate(("one", "two", "three", "four", "five"))]
    text = folder(pipeline=source, shared="RATE = 1.5\n" + "\n".join(helpers))
    assert hash_definition({"prepare": text}) == "057769fda03b5d24508e2a57ce4d4409"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a from events", "SELECT  a\nFROM events -- all\n;"),
        ("a > 1 and b < 2", "((a > 1) AND (b < 2))"),
        ("coalesce(a, b + 1)", "COALESCE((a), (b+1))"),
        ("cast(a as decimal(3,1))", "CAST(a AS DECIMAL(3, 1))"),
        ("date '2020-01-01'", "DATE '2020-01-01'"),
        ("(a and b) or c", "a AND b OR c"),
        ("case when a then b end", "CASE WHEN (a) THEN (b) END"),
        ("x between 1 and 2 and y", "(x BETWEEN 1 AND (2)) AND y"),
    ],
)
def test_sql_that_says_the_same_in_another_layout_is_the_same(one, other):
    assert canonical_sql(one) == canonical_sql(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select a, b from events", "select b, a from events"),
        ("a > 1", "a > 1.0"),
        ("a > 1", "a > 1L"),
        ("a = 'x'", "a = 'X'"),
        ("a = 'it''s'", "a = 'it' 's'"),
        ("a = 'x y'", "a = 'x  y'"),
        ("a = 'x -- y'", "a = 'x'"),
        ("(a or b) and c", "a or b and c"),
        ("a - (b - c)", "a - b - c"),
        ("a between 1 and (b = c)", "a between 1 and b = c"),
        ("cast(a as int)", "try_cast(a as int)"),
        ("datediff(hour, a, b)", "datediff(hour, to_date(a), to_date(b))"),
        ("select a as x from events", "select a as X from events"),
        ("cast(a as struct<b:int>)", "cast(a as struct<B:int>)"),
        ("not (a and b)", "not a and b"),
        ("(a, b) in ((1, 2))", "(a, b) in (1, 2)"),
    ],
)
def test_sql_that_may_give_something_else_is_not_the_same(one, other):
    assert canonical_sql(one) != canonical_sql(other)


def test_canonical_sql_is_stable_and_refuses_what_it_cannot_read():
    text = canonical_sql("SELECT (a) , upper( `b c` ) AS d FROM events WHERE ((x)) IN ((1),(2))")
    assert canonical_sql(text) == text
    with pytest.raises(DefinitionError, match="cannot be read"):
        canonical_sql("select 'open")
    with pytest.raises(DefinitionError, match="cannot be read"):
        canonical_sql("select a from events where")


def test_the_hash_depends_on_the_parts_and_not_on_their_order():
    one = hash_definition({"a": 1, "b": ["x", None, {"c": True}]})
    assert one == hash_definition({"b": ["x", None, {"c": True}], "a": 1})
    assert re.fullmatch("[0-9a-f]{32}", one)
    assert one != hash_definition({"a": "1", "b": ["x", None, {"c": True}]})
    with pytest.raises(DefinitionError, match="cannot be hashed"):
        hash_definition({"a": object()})
    with pytest.raises(DefinitionError, match="cannot be hashed"):
        hash_definition({"a": float("nan")})
