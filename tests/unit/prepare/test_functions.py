from __future__ import annotations

import importlib
import sys
import textwrap

import pytest

from twinstream.errors import DefinitionError
from twinstream.prepare import compile_prepare

COLUMNS = {"event_id": "string", "amount": "decimal(12,2)"}


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Compiles the `prepare` of a module that is written into a pipelines folder."""

    def compiled(source, **others):
        for name, text in {"functions_under_test": source, **others}.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        monkeypatch.syspath_prepend(str(tmp_path))
        for name in ("functions_under_test", *others):
            sys.modules.pop(name, None)
        return compile_prepare(importlib.import_module("functions_under_test").prepare, COLUMNS, tmp_path)

    yield compiled
    sys.modules.pop("functions_under_test", None)
    sys.modules.pop("helpers_under_test", None)


def test_a_pure_function_is_accepted_and_its_columns_are_left_to_spark(prepared):
    made = prepared(
        """
        import math
        from datetime import datetime, timedelta
        from os.path import join
        from twinstream.prepare import batch_time

        def prepare(rows):
            from pyspark.sql import functions as F
            since = datetime(2020, 1, 1) + timedelta(days=math.floor(1.5))
            return rows.where(rows.at > since).withColumn("seen", batch_time()).withColumn("p", F.upper("page"))
        """
    )
    assert made.output is None
    assert made.canonical.startswith("function ")


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("import random", "random.random()"),
        ("from random import random", "random()"),
        ("from random import randint as pick", "pick(1, 2)"),
        ("import uuid", "uuid.uuid4()"),
        ("from uuid import uuid4", "uuid4()"),
        ("import time", "time.time()"),
        ("from time import time as clock", "clock()"),
        ("from datetime import datetime", "datetime.now()"),
        ("import datetime as dt", "dt.datetime.utcnow()"),
        ("import datetime", "datetime.date.today()"),
        ("import os", "os.environ['X']"),
        ("from os import environ", "environ['X']"),
        ("import os", "os.getenv('X')"),
        ("", "open('x')"),
        ("", "hash('x')"),
        ("", "eval('1')"),
        ("from pathlib import Path", "Path('x').read_text()"),
        ("import urllib.request", "urllib.request.urlopen('x')"),
        ("import subprocess", "subprocess.run('x')"),
    ],
)
def test_an_impure_function_is_refused_wherever_it_is_called(prepared, head, call):
    direct = f"{head}\ndef prepare(rows):\n    return rows.where({call})"
    local = f"def prepare(rows):\n    {head or 'pass'}\n    return rows.where({call})"
    nested = f"{head}\ndef prepare(rows):\n    return rows.transform(lambda r: r.where({call}))"
    helper = "from helpers_under_test import helper\ndef prepare(rows):\n    return helper(rows)"
    for source, other in [(direct, ""), (local, ""), (nested, ""), (helper, f"{head}\ndef helper(r): return {call}")]:
        with pytest.raises(DefinitionError) as error:
            prepared(source, helpers_under_test=other)
        assert "not pure" in str(error.value) or "cannot be part of the definition's hash" in str(error.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("N = 0\ndef prepare(rows):\n    global N\n    N += 1\n    return rows", "'global N'"),
        (
            "def make():\n    n = 0\n    def prepare(rows):\n        nonlocal n\n        n += 1\n        return rows\n"
            "    return prepare\nprepare = make()",
            "nonlocal",
        ),
        ("def prepare(rows):\n    yield rows", "yields"),
        ("async def prepare(rows):\n    return rows", "waits"),
        ("def prepare(): pass", "with the rows alone"),
        ("def prepare(rows, other): pass", "with the rows alone"),
        ("prepare = 3", "is a int"),
    ],
)
def test_a_function_that_is_no_function_of_its_rows_is_refused(prepared, source, words):
    with pytest.raises(DefinitionError) as error:
        prepared(source)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("head", "call", "words"),
    [
        ("from pyspark.sql import functions as F", "F.rand()", "rand"),
        ("from pyspark.sql.functions import uuid", "uuid()", "uuid"),
        ("import pyspark.sql.functions as F", "F.current_timestamp()", "batch_time()"),
        ("from pyspark.sql import functions as F", "F.explode('items')", "as SQL"),
        ("from pyspark.sql import functions as F", "F.sum('amount')", "aggregate function sum"),
        ("from pyspark.sql import functions as F", "F.row_number()", "window function row_number"),
    ],
)
def test_what_spark_offers_and_prepare_does_not_is_seen_without_running_it(prepared, head, call, words):
    for source in (
        f"{head}\ndef prepare(rows):\n    return {call}",
        f"def prepare(rows):\n    {head}\n    return {call}",
    ):
        with pytest.raises(DefinitionError) as error:
            prepared(source)
        assert words in str(error.value)


def test_without_a_root_the_folder_of_the_function_counts():
    assert compile_prepare(lambda rows: rows.where("amount > 1"), COLUMNS, None).output is None


def test_spark_types_and_python_functions_for_spark_are_part_of_the_definition(prepared):
    source = """
        from pyspark.sql import functions as F
        from pyspark.sql.types import DecimalType, IntegerType

        MONEY = DecimalType(12, {scale})
        LIMIT = {limit}

        @F.udf(returnType=IntegerType())
        def shorten(text):
            return len(text or "") - LIMIT

        def prepare(rows):
            return rows.withColumn("short", shorten("page")).withColumn("money", F.col("n").cast(MONEY))
    """
    texts = [prepared(source.format(scale=scale, limit=limit)).canonical for scale, limit in [(2, 3), (2, 4), (3, 3)]]
    assert len(set(texts)) == 3
    assert prepared(source.format(scale=2, limit=3)).canonical == texts[0]
