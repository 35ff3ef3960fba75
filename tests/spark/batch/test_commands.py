"""The questions that people ask on the command line, and bad input that gets one clear answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.commands import Commands, commands_on
from tests.e2e.home import Home
from tests.spark.batch import damage
from tests.spark.batch.looks import stored


@pytest.fixture
def commands(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return commands_on(home, monkeypatch, capsys)


def test_from_the_question_to_the_repair(commands: Commands, tmp_path: Path) -> None:
    home = commands.home
    assert commands.good("reconcile", "page_views", "--json").data["verdict"] == "equal"
    assert commands.good("certificate", "page_views", "--verify", "--json").data["verdict"] == "equal"
    row = stored(home, "_txid = 1")[0]
    damage.change(home, "page_views", damage.is_row(row), {"views": str(row["views"] + 1)})
    scrubbed = commands.run("scrub", "page_views", "--json")
    assert (scrubbed.code, [one["txid"] for one in scrubbed.data["damaged"]]) == (1, [1])
    found = commands.run("reconcile", "page_views", "--json")
    assert (found.code, found.data["comparison"]["counts"]["mismatched"]) == (1, 1)
    page = tmp_path / "report.html"
    commands.good("report", "page_views", "--html", str(page))
    assert "1\u00a0row differs" in page.read_text()
    assert "1 mismatched" in commands.good("repair", "page_views", "--dry-run").out.replace("\u00a0", " ")
    assert commands.good("repair", "page_views", "--json").data["verdict"] == "equal"
    mended = commands.good("scrub", "page_views", "--json").data
    assert (mended["damaged"], mended["mended"]) == ([], [1])
    checked = commands.run("certificate", "page_views", "--verify", "--json")
    assert [check["says"] for check in checked.data["checks"] if check["holds"] is not True] == []
    assert "Undone" in commands.good("repair", "page_views", "--undo").err
    commands.bad("repair", "page_views", "--undo", kind="Refused", code=1)


def test_two_tables_are_compared_by_their_paths(commands: Commands, tmp_path: Path) -> None:
    spark = commands.home.spark
    left, right, other = (str(tmp_path / name) for name in ("left", "right", "other"))
    spark.range(10).selectExpr("id", "id * 2 as n").write.format("delta").save(left)
    spark.range(10).selectExpr("id", "if(id = 3, 7, id * 2) as n").write.parquet(right)
    spark.range(10).selectExpr("id", "id * 2 as m").write.parquet(other)
    found = commands.run("compare-tables", left, right, "--key", "id", "--json")
    assert (found.code, found.data["counts"]["mismatched"]) == (1, 1)
    assert "n 6, should be 7" in commands.run("compare-tables", left, right, "--key", "id").out
    close = commands.good("compare-tables", left, right, "--key", "id", "--tolerance", "1")
    assert "all 10 rows are equal" in " ".join(close.out.split())
    error = commands.bad("compare-tables", left, other, "--key", "id", kind="ShapeMismatch")
    assert '"m"' in error["what"]
    commands.bad("compare-tables", left, right, "--key", "no such", kind="ShapeMismatch")
    commands.bad("compare-tables", left, str(tmp_path / "nowhere"), "--key", "id", kind="BadUsage")


def test_bad_input_gets_one_clear_error(commands: Commands) -> None:
    error = commands.bad("reconcile", "page_views", "--frontier", "99", kind="Refused", code=1)
    assert "the frontier is" in error["what"]
    commands.bad("recompute", "page_views", "--frontier", "99", kind="Refused", code=1)
    commands.bad("report", "page_views", "--id", "../../secret", kind="ReportError")
    commands.bad("report", "page_views", "--id", "12", kind="ReportError")
    commands.bad("certificate", "page_views", kind="Refused", code=1)
    commands.bad("repair", "page_views", "--frontier", "99", kind="Refused", code=1)
    commands.bad("compare-generations", "page_views", kind="Refused", code=1)
    commands.bad("drop", "page_views", "--generation", "1", kind="Refused", code=1)
    commands.bad("drop", "page_views", "--generation", "9", kind="Refused", code=1)
    commands.bad("reconcile", "nobody", kind="UnknownPipeline")


def test_source_files_that_are_gone_are_named_with_their_txids(commands: Commands) -> None:
    commands.good("reconcile", "page_views")
    for file in sorted(commands.home.data("page_views").glob("*.json"))[:2]:
        file.unlink()
    error = commands.bad("recompute", "page_views", kind="SourceChanged")
    assert "txids can no longer be proven from the source (1)" in error["what"]
    checked = commands.run("certificate", "page_views", "--verify", "--json")
    assert checked.code == 1
    assert any("txids 1 cannot be proven any more" in check["detail"] for check in checked.data["checks"])
    found = commands.run("reconcile", "page_views", "--fresh", "--json")
    assert found.code == 1, found.err
    assert any("is gone" in cause for cause in found.data["causes"])
