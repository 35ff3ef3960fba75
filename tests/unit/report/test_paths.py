"""A report's name never leads out of its folder."""

from __future__ import annotations

import pytest

from twinstream.errors import ReportError
from twinstream.report.paths import report_path

BAD = ["", ".", "..", "../x", "a/b", "a\\b", "/etc/passwd", "a\x00", "a\n", "~", ".hidden", "x" * 101, "ä", "a b", "-x"]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_id_is_refused(tmp_path, name):
    with pytest.raises(ReportError, match="cannot name a report"):
        report_path(tmp_path, "page_views", name)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_pipeline_is_refused(tmp_path, name):
    with pytest.raises(ReportError, match="cannot name a report"):
        report_path(tmp_path, name, "r1")


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ReportError):
        report_path(tmp_path, "page_views", "r1", "html/../../x")


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "home" / "reports").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home" / "reports" / "page_views").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReportError):
        report_path(tmp_path / "home", "page_views", "r1")


def test_a_good_name_is_a_file_in_the_pipelines_own_folder(tmp_path):
    found = report_path(tmp_path, "page_views", "20260910T020000-7c1e")
    assert found == tmp_path / "reports" / "page_views" / "20260910T020000-7c1e.html"
    assert not found.parent.exists()
