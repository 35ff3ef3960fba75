"""Whatever is wrong with a users' suite is one clear error."""

from __future__ import annotations

import pytest

from tests.e2e.home import ROOT
from tests.spark.quality.made import GOOD, write_suite
from twinstream.errors import SuiteError, TwinstreamError
from twinstream.quality.users import check_columns, has_suite, load_suite
from twinstream.quality.validate import validate
from twinstream.settings import Settings

COLUMNS = ["page", "window_start", "window_end", "views", "spend"]


def test_the_folder_is_beside_the_pipelines_or_where_the_setting_says(tmp_path):
    beside = Settings.from_env({"TWINSTREAM_PIPELINES": str(tmp_path / "pipelines")})
    assert beside.expectations == tmp_path / "expectations"
    elsewhere = Settings.from_env({"TWINSTREAM_EXPECTATIONS": str(tmp_path / "mine")})
    assert elsewhere.expectations == tmp_path / "mine"


def test_the_example_suite_fits_the_example_pipeline():
    suite = load_suite(ROOT / "include" / "expectations", "page_views")
    check_columns(suite, "page_views", COLUMNS)


def test_an_unknown_suite_is_named_with_the_nearest(tmp_path):
    write_suite(tmp_path, "gxe.ExpectTableRowCountToEqual(value=1)")
    assert has_suite(tmp_path, "page_views")
    assert not has_suite(tmp_path, "page_view")
    with pytest.raises(SuiteError, match="no suite for page_view") as raised:
        load_suite(tmp_path, "page_view")
    assert raised.value.next_step == "Did you mean 'page_views'?"


@pytest.mark.parametrize("name", ["../page_views", "/etc/passwd", "a/b", ""])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(TwinstreamError, match="not usable"):
        load_suite(tmp_path / "expectations", name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_to_be_found", "page_views.py, line 1: ModuleNotFoundError"),
        ("x = 1\ndef suite(:", "page_views.py, line 2: SyntaxError"),
        ("def suite():\n    return 1 / 0", "page_views.py, line 2: ZeroDivisionError"),
        ("raise SystemExit(3)", "page_views.py, line 1: SystemExit"),
        ("x = 1", "has no `suite`"),
        ("suite = 'views > 0'", "gives a str"),
        ("import great_expectations as gx\nsuite = gx.ExpectationSuite(name='none')", "expects nothing"),
    ],
)
def test_a_file_that_gives_no_suite_says_where_and_why(tmp_path, text, said):
    (tmp_path / "page_views.py").write_text(text)
    with pytest.raises(SuiteError, match="page_views") as raised:
        load_suite(tmp_path, "page_views")
    assert said in raised.value.what
    assert raised.value.next_step


@pytest.mark.parametrize(
    "expectation",
    [
        "gxe.ExpectColumnValuesToNotBeNull(column='vews')",
        "gxe.ExpectColumnPairValuesToBeEqual(column_A='views', column_B='vews')",
        "gxe.ExpectCompoundColumnsToBeUnique(column_list=['page', 'vews'])",
    ],
)
def test_a_wrong_column_is_named_with_the_nearest(tmp_path, expectation):
    suite = load_suite(write_suite(tmp_path, expectation), "page_views")
    with pytest.raises(SuiteError, match="column 'vews'") as raised:
        check_columns(suite, "page_views", COLUMNS)
    assert raised.value.next_step == "Did you mean 'views'?"


def test_an_expectation_that_cannot_be_computed_is_an_error_not_a_verdict(spark, tmp_path):
    folder = write_suite(tmp_path / "e", "gxe.ExpectColumnMeanToBeBetween(column='page', min_value=0)")
    rows = spark.createDataFrame([("/a",)], "page string")
    with pytest.raises(SuiteError, match="cannot be asked"):
        validate(tmp_path, GOOD, (), rows, folder)
    pages = {file.parents[2].name for file in tmp_path.rglob("data_docs/validations/**/*.html")}
    assert pages >= {"reconciliation", "exactly_once", "differences"}
