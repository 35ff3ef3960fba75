"""Facts become expectations, expectations become a verdict, and Data Docs show both."""

from __future__ import annotations

import multiprocessing
import re
import socket
import time
from dataclasses import replace

import pytest

from tests.spark.quality.made import GOOD, SAMPLE, compared, facts, write_suite
from twinstream.errors import QualityError
from twinstream.quality.context import folder_of
from twinstream.quality.facts import SideFacts
from twinstream.quality.validate import validate, verdict
from twinstream.reconcile.result import Difference, Expectation, Verdict
from twinstream.transaction import Accounting, Tally

SCRIPT = "<script>alert('$x')</script>"


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Great Expectations takes long to import: once, and not on the clock of a test."""
    import great_expectations  # noqa: F401


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """One home for all: validations follow each other, as they do in life."""
    return tmp_path_factory.mktemp("home")


def failed(validation) -> dict[str, str]:
    return {one.column: one.severity for one in validation.expectations if not one.success}


def test_good_facts_meet_every_expectation_and_the_verdict_is_equal(home):
    found = validate(home, GOOD, ())
    assert failed(found) == {}
    assert {one.suite for one in found.expectations} == {"reconciliation", "exactly once", "differences"}
    assert verdict(compared(), found.expectations) is Verdict.EQUAL
    assert found.page.is_file()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"differences": dict.fromkeys(Difference, 1)}, {
            "rows_missing": "critical", "rows_phantom": "critical", "rows_duplicated": "critical",
            "rows_mismatched": "critical", "rows_source_changed": "critical",
            "rows_definition_changed": "critical", "rows_non_deterministic": "critical",
        }),
        ({"stream": SideFacts(91, 1, 2, {"views": 3})}, {
            "rows_apart": "info", "stream_duplicate_keys": "critical", "stream_null_keys": "warning",
            "stream_views_below_zero": "critical",
        }),
        ({"batch": SideFacts(90, 1, 2, {"views": 3})}, {
            "batch_duplicate_keys": "critical", "batch_null_keys": "warning", "batch_views_below_zero": "critical",
        }),
        ({"records_in_source": 101, "txids_open": 1, "txids_committed": 3}, {
            "records_unaccounted": "critical", "txids_open": "critical", "txids_missing": "critical",
        }),
        ({"accounting": Accounting(emitted=Tally(101))}, {"records_unaccounted": "critical"}),
    ],
)  # fmt: skip
def test_each_fact_that_is_wrong_fails_its_own_expectation(home, changed, expected):
    assert failed(validate(home, facts(**changed), ())) == expected


def test_the_differing_rows_fail_too_and_the_number_that_was_found_is_told(home):
    found = validate(home, facts(differences={Difference.MISSING: 17}), (SAMPLE,))
    seen = {one.column: one.observed for one in found.expectations if not one.success}
    assert seen == {"rows_missing": "17", "kind": "1 of 1 rows, such as missing"}


def test_late_rows_are_told_and_fail_nothing(home):
    found = validate(home, facts(differences={Difference.LATE: 17}), ())
    assert failed(found) == {}
    assert [one.observed for one in found.expectations if one.column == "rows_late"] == ["17"]


def test_what_the_definition_does_not_promise_is_not_asked(home):
    found = validate(home, facts(stream=SideFacts(90), batch=SideFacts(90)), ())
    assert not [one for one in found.expectations if "key" in (one.column or "") and one.suite == "exactly once"]


@pytest.mark.parametrize(
    ("counts", "severities", "expected"),
    [
        ({}, (), Verdict.EQUAL),
        ({}, ("info",), Verdict.EQUAL),
        ({}, ("info", "warning"), Verdict.WARNING),
        ({}, ("warning", "critical"), Verdict.DIFFERENT),
        ({Difference.MISSING: 1}, (), Verdict.DIFFERENT),
        ({Difference.LATE: 5, Difference.MISSING: 0}, (), Verdict.EQUAL),
    ],
)
def test_severity_decides_the_verdict(counts, severities, expected):
    expectations = [Expectation("s", "x", severity, False) for severity in severities]
    met = Expectation("s", "y", "critical", True)
    assert verdict(compared(counts), [met, *expectations]) is expected


def test_the_users_suite_is_asked_about_the_users_rows(home, spark, tmp_path):
    folder = write_suite(
        tmp_path / "expectations",
        "gxe.ExpectColumnValuesToBeBetween(column='views', min_value=1, severity='warning', description='Seen')",
        "gxe.ExpectTableRowCountToBeBetween(min_value=1, max_value=5)",
    )
    rows = spark.createDataFrame([("/a", 1), ("/b", 0)], "page string, views int")
    found = validate(home, GOOD, (), rows, folder)
    mine = [one for one in found.expectations if one.suite == "page_views.py"]
    assert mine[0] == Expectation("page_views.py", "Seen", "warning", False, "1 of 2 rows, such as 0", "views")
    assert mine[1].says == "table row count to be between (min value 1, max value 5)"
    assert (mine[1].success, mine[1].observed, mine[1].severity) == (True, "2", "critical")
    assert verdict(compared(), found.expectations) is Verdict.WARNING


def test_data_docs_show_a_script_as_text_and_fetch_nothing(home, spark, tmp_path):
    folder = write_suite(
        tmp_path / "expectations",
        f'gxe.ExpectColumnValuesToBeInSet(column="page", value_set=["/a"], description="{SCRIPT}")',
        f'gxe.ExpectColumnDistinctValuesToContainSet(column="page", value_set=["{SCRIPT}", "/b"])',
    )
    rows = spark.createDataFrame([(SCRIPT,), ("<img src=x onerror=alert(1)>",)], "page string")
    page = validate(home, replace(GOOD, pipeline="hostile"), (), rows, _renamed(folder)).page
    pages = {file: file.read_text() for file in page.parent.rglob("*.html")}
    assert any("&lt;script&gt;alert(&#39;&#36;x&#39;)&lt;/script&gt;" in text for text in pages.values())
    assert any("&lt;img src=x" in text for text in pages.values())
    for file, text in pages.items():
        assert "<script" not in text.lower(), file
        assert "<img" not in text.lower(), file
        assert not re.search(r"(src|href)=[\"']?(https?:)?//(?!greatexpectations)|url\(", text), file


def _renamed(folder):
    (folder / "page_views.py").rename(folder / "hostile.py")
    return folder


def test_a_validation_is_quick_silent_and_stays_on_this_machine(home, capfd, monkeypatch):
    def no_network(*arguments, **options):
        raise AssertionError("a call to the outside")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, no_network)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    started = time.monotonic()
    validate(home, GOOD, (SAMPLE,) * 200)
    assert time.monotonic() - started < 10
    assert capfd.readouterr() == ("", "")


def _in_a_process(home, pipeline):
    found = validate(home, facts(pipeline=pipeline, frontier=5, txids_committed=5), ())
    assert all(one.success for one in found.expectations)


def test_processes_that_validate_at_once_do_not_disturb_each_other(tmp_path):
    context = multiprocessing.get_context("fork")
    names = ["one", "two", "one", "two"]
    running = [context.Process(target=_in_a_process, args=(tmp_path, name)) for name in names]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0, 0, 0, 0]
    index = (folder_of(tmp_path) / "data_docs" / "index.html").read_text()
    assert index.count("one.reconciliation</a>") == 2
    assert index.count("two.exactly_once</a>") == 2


def test_a_damaged_folder_is_named_and_left_alone(tmp_path):
    folder = folder_of(tmp_path)
    folder.mkdir()
    (folder / "great_expectations.yml").write_text("stores: [")
    with pytest.raises(QualityError, match="cannot open"):
        validate(tmp_path, GOOD, ())
    assert (folder / "great_expectations.yml").read_text() == "stores: ["
