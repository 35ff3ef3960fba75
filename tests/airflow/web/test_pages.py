"""What the pages say, and the JSON they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.definitions import change
from tests.airflow.web.conftest import HIDDEN, Web
from tests.airflow.web.made import SECOND, Made
from tests.unit.report import results
from twinstream.errors import LedgerError
from twinstream_airflow.web.ledger import open_ledger


@pytest.fixture
def views(made: Made) -> int:
    """A pipeline with 30 committed txids and 5 open ones."""
    return made.generation("page_views", made.define("page_views"), 30, 5)


def test_the_overview_shows_failures_first(made: Made, web: Web, views: int) -> None:
    made.reconcile(views, "page_views", sealed=True)
    wrong = made.generation("zebra", made.define("zebra"), 20)
    made.reconcile(wrong, "zebra", results.different)
    found = web.as_user("viewer").get("api/pipelines").json()
    assert [(one["name"], one["tone"]) for one in found["pipelines"]] == [("zebra", "bad"), ("page_views", "good")]
    zebra = found["pipelines"][0]
    assert zebra["findings"][0]["says"] == "45\u00a0rows differ as of txid 20."
    assert zebra["guarantee"] == "exactly-once"
    assert {tile["label"]: tile["value"] for tile in found["tiles"]} == {
        "pipelines": 2, "failing": 1, "with a warning": 0, "differing rows": 45, "open txids": 5,
    }  # fmt: skip
    page = web.as_user("viewer").get("").text
    assert page.index("zebra") < page.index("page_views")


def test_tiles_follow_the_filters(made: Made, web: Web, views: int) -> None:
    made.generation("orders", made.define("orders"), 3, 2)
    client = web.as_user("viewer")
    tiles = client.get("api/pipelines", params={"q": "ORD"}).json()["tiles"]
    assert {tile["label"]: tile["value"] for tile in tiles}["open txids"] == 2
    assert "No pipeline matches" in client.get("", params={"q": "nothing like it"}).text


def test_a_pipeline_says_where_it_stands(made: Made, web: Web, views: int) -> None:
    made.hold(views, 31, "amount is below zero in 3 rows")
    made.fail(views, 32, 32, "SourceChanged: the file is another one")
    made.process(views, 33)
    found = web.as_user("viewer").get("api/pipelines/page_views").json()
    assert found["line"]["open"] == {"HELD": 1, "PLANNED": 3, "PROCESSING": 1}
    assert [cell["state"] for cell in found["timeline"]][29:] == [
        "COMMITTED", "HELD", "FAILED", "PROCESSING", "PLANNED", "PLANNED",
    ]  # fmt: skip
    assert found["window"] == {"first": 1, "last": 35, "of": 35}
    assert found["accounting"]["read"] == sum(100_000 + txid % 7 * 1_000 for txid in range(1, 31))
    assert {one["name"] for one in found["series"]} == {"throughput", "lag", "watermark", "late"}
    assert all(part["delivery"] == "exactly-once" for part in found["definition"]["parts"])


def test_the_table_tells_failed_txids_from_planned_ones(made: Made, web: Web, views: int) -> None:
    made.fail(views, 32, 32, "SourceChanged: the file is another one")
    client = web.as_user("viewer")
    for state, expected in (("FAILED", {32: "SourceChanged: the file is another one"}), ("PLANNED", [31, 33, 34, 35])):
        found = client.get("api/pipelines/page_views", params={"state": state}).json()["txids"]
        assert {one["state"] for one in found} == {state}
        reasons = {one["txid"]: one["reason"] for one in found}
        assert reasons == (expected if state == "FAILED" else dict.fromkeys(expected))


def test_txids_are_filtered_by_the_address(made: Made, web: Web, views: int) -> None:
    made.hold(views, 32, "a reason")
    client = web.as_user("viewer")
    held = client.get("api/pipelines/page_views", params={"state": "HELD"}).json()
    assert [(one["txid"], one["reason"]) for one in held["txids"]] == [(32, "a reason")]
    some = client.get("api/pipelines/page_views", params={"first": 3, "last": 5}).json()
    assert [one["txid"] for one in some["txids"]] == [5, 4, 3]
    assert some["accounting"]["read"] == 100_000 * 3 + (3 + 4 + 5) * 1_000


def test_a_transaction_tells_everything_about_a_txid(made: Made, web: Web, views: int) -> None:
    client = web.as_user("viewer")
    found = client.get("api/pipelines/page_views/txids/7").json()
    assert (found["state"], found["closes"], found["files"][0]["path"]) == ("COMMITTED", True, "day/000007.json")
    assert found["attempts"][0]["asked_by"]["run_id"] == "manual__2026 1"
    page = client.get("pipelines/page_views/txids/7").text
    assert 'data-airflow="/dags/page_views__microbatch/runs/manual__2026%201/tasks/drain?try_number=2"' in page


def test_only_held_or_failed_txids_can_be_decided_about(made: Made, web: Web, views: int) -> None:
    made.hold(views, 31, "a reason")
    made.fail(views, 32, 32, "broken")
    made.fail(views, 33, 34, "broken, but nobody knows by which of the two")
    client = web.as_user("admin")
    offered = {
        txid: [one["name"] for one in client.get(f"api/pipelines/page_views/txids/{txid}").json()["actions"]]
        for txid in (7, 31, 32, 33)
    }
    assert offered == {7: [], 31: ["release", "discard"], 32: ["discard"], 33: []}


def test_actions_are_runs_of_the_pipelines_dags(made: Made, web: Web, views: int) -> None:
    offered = {one["name"]: one for one in web.as_user("user").get("api/pipelines/page_views").json()["actions"]}
    assert {name: one["dag_id"] for name, one in offered.items()} == {
        "drain": "page_views__microbatch", "recompute": "page_views__recompute", "reconcile": "page_views__reconcile",
        "repair": "page_views__repair", "pause": "page_views__control", "reinject": "page_views__control",
    }  # fmt: skip
    assert all(one["allowed"] for one in offered.values())
    assert offered["pause"]["conf"] == {"action": "pause"}
    seen = web.as_user("viewer").get("api/pipelines/page_views").json()["actions"]
    assert not any(one["allowed"] for one in seen)


def test_actions_fit_the_forms_of_their_dags(made: Made, web: Web, views: int) -> None:
    from twinstream.catalog import load_catalog
    from twinstream_airflow.dags.control import control_dag
    from twinstream_airflow.dags.microbatch import microbatch_dag
    from twinstream_airflow.dags.recompute import recompute_dag
    from twinstream_airflow.dags.reconcile import reconcile_dag
    from twinstream_airflow.dags.repair import repair_dag

    definition = load_catalog(made.pipelines).get("page_views")
    built = [build(definition) for build in (control_dag, microbatch_dag, recompute_dag, reconcile_dag, repair_dag)]
    dags = {dag.dag_id: dag for dag in built}
    made.hold(views, 31, "a reason")
    client = web.as_user("user")
    offered = client.get("api/pipelines/page_views").json()["actions"]
    offered += client.get("api/pipelines/page_views/txids/31").json()["actions"]
    samples = {"integer": 3, "text": "some text", "boolean": True}
    for one in offered:
        given = one["conf"] | {field["name"]: samples[field["kind"]] for field in one["fields"]}
        dags[one["dag_id"]].params.update(given)
        dags[one["dag_id"]].params.validate()


def test_a_reconciliation_shows_verdict_history_and_certificate(made: Made, web: Web, views: int) -> None:
    made.reconcile(views, "page_views", results.different, ago=90_000_000_000)
    newest = made.reconcile(views, "page_views", sealed=True)
    client = web.as_user("viewer")
    found = client.get(f"api/pipelines/page_views/reconciliations/{newest}").json()
    assert found["sentence"] == "All 1\u202f204\u202f311\u00a0rows are equal up to txid 30."
    assert [one["verdict"] for one in found["history"]] == ["equal", "different"]
    assert found["certificate"]["sealed"] is True
    first = client.get("pipelines/page_views/reconciliations")
    assert first.headers["location"] == f"/twinstream/pipelines/page_views/reconciliations/{newest}"


def test_who_may_repair_is_told_of_the_button_and_others_are_not(made: Made, web: Web, views: int) -> None:
    id = made.reconcile(views, "page_views", results.different)
    path = f"pipelines/page_views/reconciliations/{id}"
    assert "Press Repair above" in web.as_user("op").get(path).text
    assert "Press Repair above" not in web.as_user("viewer").get(path).text
    equal = made.reconcile(views, "page_views")
    assert "Press Repair above" not in web.as_user("op").get(f"pipelines/page_views/reconciliations/{equal}").text


def test_a_certificate_that_was_changed_is_told(made: Made, web: Web, views: int) -> None:
    id = made.reconcile(views, "page_views", sealed=True)
    file = next((made.home / "certificates").rglob("30.json"))
    file.write_text(file.read_text().replace('"verdict": "equal"', '"verdict": "great"'))
    assert "somebody has changed it" in web.as_user("viewer").get(f"pipelines/page_views/reconciliations/{id}").text


def test_differing_rows_lead_to_their_txids(made: Made, web: Web, views: int) -> None:
    id = made.reconcile(views, "page_views", results.different)
    page = web.as_user("viewer").get(f"pipelines/page_views/reconciliations/{id}").text
    assert 'href="/twinstream/pipelines/page_views/txids/18"' in page
    assert "<mark>41</mark>" in page
    assert '<mark class="batch">40</mark>' in page


def test_reports_can_be_taken_along(made: Made, web: Web, views: int) -> None:
    id = made.reconcile(views, "page_views", results.different, sealed=True)
    client = web.as_user("viewer")
    place = f"pipelines/page_views/reconciliations/{id}"
    assert json.loads(client.get(f"{place}/report.json").text)["verdict"] == "different"
    assert "45\u00a0rows differ" in client.get(f"{place}/report.html").text
    assert client.get(f"{place}/certificate.json").json()["frontier"] == 30
    assert "attachment" in client.get(f"{place}/report.html").headers["content-disposition"]


def test_a_reconciliation_of_another_pipeline_is_not_found(made: Made, web: Web, views: int) -> None:
    other = made.generation(HIDDEN, made.define(HIDDEN), 5)
    id = made.reconcile(other, HIDDEN, results.different)
    client = web.as_user("denied")
    for end in ("", "/report.html", "/report.json", "/certificate.json"):
        assert client.get(f"pipelines/page_views/reconciliations/{id}{end}").status_code == 404


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("pipelines/nothing", "There is no pipeline nothing."),
        ("pipelines/page_views/txids/36", "Its txids are 1 to 35."),
        ("pipelines/page_views/reconciliations/99", "has no reconciliation 99"),
        ("pipelines/page_views/reconciliations", "was never reconciled"),
        ("pipelines/page_views/data-docs/validations/page_views/x.html", "It may have been deleted"),
        ("no/such/page", "There is no such page."),
    ],
)
def test_what_is_not_there_gets_a_clear_page(web: Web, views: int, path: str, says: str) -> None:
    answer = web.as_user("viewer").get(path)
    assert answer.status_code == 404
    assert says in answer.text


def test_without_pipelines_the_overview_says_how_to_make_one(web: Web) -> None:
    page = web.as_user("viewer").get("").text
    assert "There are no pipelines yet" in page
    assert "twinstream new" in page


def test_a_definition_that_cannot_be_loaded_is_told(made: Made, web: Web, views: int) -> None:
    (made.pipelines / "broken.py").write_text("pipeline = 7\n")
    assert "is a int, not a Pipeline" in web.as_user("viewer").get("").text


def test_a_ledger_of_another_version_gets_a_clear_page(made: Made, web: Web, views: int) -> None:
    from sqlalchemy import text

    with made.ledger.database.write("made") as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    answer = web.as_user("viewer").get("")
    assert (answer.status_code, "this Twinstream knows versions up to" in answer.text) == (503, True)


def test_a_ledger_that_is_down_gets_a_clear_page(made: Made, web: Web) -> None:
    Path(made.url.removeprefix("sqlite:///")).write_text("this is no database, whatever its name says")
    answer = web.as_user("viewer").get("")
    assert (answer.status_code, "is no ledger, or it is damaged" in answer.text) == (503, True)


def test_the_web_app_cannot_write_to_the_ledger(made: Made, views: int) -> None:
    ledger = open_ledger(made.url)
    assert ledger is not None
    with pytest.raises(LedgerError, match="readonly"):
        ledger.batches.plan(views, 35, [], "hash")


def test_the_web_app_cannot_write_to_a_ledger_on_postgresql(postgres_database: str, tmp_path: Path) -> None:
    made = Made(tmp_path, postgres_database)
    generation = made.generation("page_views", "h", 3)
    ledger = open_ledger(postgres_database)
    assert ledger is not None
    assert ledger.generations.get(generation).frontier == 3
    with pytest.raises(LedgerError, match="read-only"):
        ledger.batches.plan(generation, 3, [], "hash")


def test_the_tab_leads_to_the_pipeline_or_says_that_there_is_none(web: Web, views: int) -> None:
    client = web.as_user("viewer")
    ours = client.get("tab", params={"dag_id": "page_views__reconcile"})
    assert ours.headers["location"] == "/twinstream/pipelines/page_views"
    about_all = client.get("tab", params={"dag_id": "twinstream__freshness"})
    assert about_all.headers["location"] == "/twinstream/"
    other = client.get("tab", params={"dag_id": "example__dag"})
    assert other.status_code == 200
    assert "is not a DAG of a Twinstream pipeline" in other.text


def test_txids_of_one_group_share_its_time(made: Made, web: Web, views: int) -> None:
    series = {
        one["name"]: one["points"] for one in web.as_user("viewer").get("api/pipelines/page_views").json()["series"]
    }
    records = [100_000 + txid % 7 * 1_000 for txid in range(1, 31)]
    assert [point["value"] for point in series["throughput"]] == [round(many / 0.9, 1) for many in records]
    assert {point["value"] for point in series["watermark"]} == {660.0}


def test_a_continuous_run_is_shown_live_where_micro_batches_are(made: Made, web: Web, views: int) -> None:
    made.stream(views)
    client = web.as_user("viewer")
    line = client.get("api/pipelines").json()["pipelines"][0]
    assert (line["mode"], line["records_per_second"]) == ("continuous", 5678.0)
    told = line["stream"]
    assert (told["live"], told["behind"], told["batch_seconds"], told["every"]) == (True, 1234.0, 1.5, "5 seconds")
    assert 3 <= told["heartbeat_age_seconds"] < 30
    for page in (client.get("").text, client.get("pipelines/page_views").text):
        assert "data-streaming" in page
        assert "1\u202f234 <small>records</small>" in page
        assert "every 5 seconds" in page
    assert "/dags/page_views__continuous/runs/manual__2/tasks/stream" in client.get("pipelines/page_views").text


def test_a_continuous_run_that_is_silent_or_failed_wants_attention(made: Made, web: Web, views: int) -> None:
    made.stream(views, seen=120 * SECOND)
    line = web.as_user("viewer").get("api/pipelines").json()["pipelines"][0]
    assert (line["tone"], line["stream"]["live"]) == ("bad", False)
    assert line["findings"][0]["says"].startswith("Its continuous run has not shown itself for 2")
    made.stream(views, "failed", error="Spark is gone")
    line = web.as_user("viewer").get("api/pipelines").json()["pipelines"][0]
    assert (line["mode"], line["stream"]) == ("micro-batch", None)
    assert line["findings"][0]["says"] == "Its continuous run failed: Spark is gone"
    made.stream(views, "done")
    assert web.as_user("viewer").get("api/pipelines").json()["pipelines"][0]["tone"] == "none"


def test_one_button_hands_a_pipeline_over_to_the_other_mode(made: Made, web: Web, views: int) -> None:
    from twinstream.catalog import load_catalog
    from twinstream_airflow.dags.control import control_dag

    client = web.as_user("user")

    def offered() -> dict[str, Any]:
        return {one["name"]: one for one in client.get("api/pipelines/page_views").json()["actions"]}

    assert "handover" not in offered(), "it reads files"
    folder = ('FileSource(\n        "data/page_views", format="json",', 'KafkaSource(\n        topics="views",')
    change(made.pipelines, "page_views", folder, ("FileSource, ", "KafkaSource, "))
    button = offered()["handover"]
    assert (button["dag_id"], button["label"]) == ("page_views__control", "Hand over to a continuous query")
    assert button["conf"] == {"action": "handover", "to": "continuous"}
    assert button["wakes"] == ["page_views__continuous"]
    assert "stop" not in offered()
    made.stream(views)
    button = offered()["handover"]
    assert (button["conf"], button["wakes"]) == (
        {"action": "handover", "to": "microbatch"},
        ["page_views__microbatch"],
    )
    assert offered()["stop"]["conf"] == {"action": "stop"}
    params = control_dag(load_catalog(made.pipelines).get("page_views")).params
    for one in (button, offered()["stop"]):
        params.update({**one["conf"], "reason": "because"})
        params.validate()


def test_a_transaction_says_who_committed_it(made: Made, web: Web, views: int) -> None:
    from twinstream.ledger.schema import attempts
    from twinstream.transaction import canonical_json

    client = web.as_user("viewer")
    found = client.get("api/pipelines/page_views/txids/7").json()["committed_by"]
    assert (found["mode"], found["holder"], found["epoch"]) == ("micro-batch", "host:1:abc", 3)
    with made.ledger.database.write("made") as connection:
        connection.execute(attempts.update().values(context=canonical_json({"mode": "continuous"})))
    assert client.get("api/pipelines/page_views/txids/7").json()["committed_by"]["mode"] == "continuous"
    assert "continuous</span>" in client.get("pipelines/page_views/txids/7").text
    assert client.get("api/pipelines/page_views/txids/33").json()["committed_by"] is None
