"""Every route refuses whoever may not use it; nothing hostile becomes markup; nothing leads out of its folder."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute

from tests.airflow.web.conftest import DENIED, HIDDEN, ROLES, Web
from tests.airflow.web.made import Made
from tests.unit.report import results
from twinstream_airflow.web.data_docs import page_file

VALUES = {"name": "twinstream.css", "txid": "1", "path": "validations/x/y.html"}


def _routes(web: Web, pipeline: str, id: int) -> list[tuple[str, str]]:
    """Every route that is mounted, with an address of it."""
    values = VALUES | {"pipeline": pipeline, "id": str(id)}
    found = []
    for route in web.app.routes:
        assert isinstance(route, APIRoute), f"{route} is guarded by nothing"
        assert route.methods is not None
        address = re.sub(r"{(\w+)(:path)?}", lambda match: values[match[1]], route.path)
        found += [(method, address.lstrip("/")) for method in route.methods]
    return found


@pytest.fixture
def hidden(made: Made) -> int:
    """The id of a reconciliation of the pipeline that one user may not see."""
    generation = made.generation(HIDDEN, made.define(HIDDEN), 5)
    return made.reconcile(generation, HIDDEN, results.different, sealed=True)


def test_there_are_only_routes_that_read(web: Web) -> None:
    assert {method for method, _ in _routes(web, "p", 1)} == {"GET"}


def test_every_route_refuses_anonymous_users(web: Web, hidden: int) -> None:
    client = web.as_user(None)
    answers = {path: client.get(path).status_code for _, path in _routes(web, HIDDEN, hidden)}
    assert len(answers) > 15
    assert set(answers.values()) == {401}, answers


def test_a_token_that_is_not_airflows_is_refused(web: Web, hidden: int) -> None:
    client = web.as_user(None)
    client.cookies.set("_token", web.token("admin")[:-4] + "aaaa")
    assert {client.get(path).status_code for _, path in _routes(web, HIDDEN, hidden)} <= {401, 403}


@pytest.mark.parametrize("role", ROLES)
def test_every_route_serves_every_role(web: Web, hidden: int, role: str) -> None:
    client = web.as_user(role)
    answers = {path: client.get(path).status_code for _, path in _routes(web, HIDDEN, hidden)}
    gone = [path for path in answers if "data-docs" in path]
    assert {answers.pop(path) for path in gone} == {404}
    assert set(answers.values()) <= {200, 303}, answers


def test_a_user_without_the_right_to_plugins_is_refused(web: Web, hidden: int) -> None:
    client = web.as_user("stranger")
    assert {client.get(path).status_code for _, path in _routes(web, HIDDEN, hidden)} == {403}


def test_a_user_who_is_denied_a_pipeline_sees_nothing_of_it(web: Web, made: Made, hidden: int) -> None:
    made.generation("page_views", made.define("page_views"), 3)
    client = web.as_user(DENIED)
    about = [path for _, path in _routes(web, HIDDEN, hidden) if HIDDEN in path]
    assert len(about) > 9
    assert {client.get(path).status_code for path in about} == {403}
    for path in ("", "api/pipelines", f"tab?dag_id={HIDDEN}__microbatch&x=1"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert f"pipelines/{HIDDEN}" not in answer.text
    assert [one["name"] for one in client.get("api/pipelines").json()["pipelines"]] == ["page_views"]
    assert client.get("pipelines/never_there").status_code == 404


def test_without_airflows_security_nothing_is_served(web: Web, hidden: int, monkeypatch: pytest.MonkeyPatch) -> None:
    client = web.as_user("admin")
    monkeypatch.setitem(sys.modules, "airflow.api_fastapi.core_api.security", None)
    assert {client.get(path).status_code for _, path in _routes(web, HIDDEN, hidden)} == {503}


@pytest.mark.parametrize("broken", ["is_authorized_view", "is_authorized_dag"])
def test_an_auth_manager_that_breaks_means_no(
    web: Web, hidden: int, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def breaks(**_: Any) -> bool:
        raise RuntimeError("the directory does not answer")

    monkeypatch.setattr(web.manager, broken, breaks)
    assert web.as_user("admin").get(f"pipelines/{HIDDEN}").status_code == 503


def test_an_answer_other_than_yes_means_no(web: Web, hidden: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web.manager, "is_authorized_dag", lambda **_: "maybe")
    assert web.as_user("admin").get(f"pipelines/{HIDDEN}").status_code == 403


def test_every_answer_keeps_browsers_from_running_anything_else(web: Web, hidden: int) -> None:
    client = web.as_user("admin")
    for _, path in _routes(web, HIDDEN, hidden):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'"), path
        assert "script-src 'unsafe" not in policy
        assert "frame-ancestors 'self'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "no-store" in headers["cache-control"] or "static" in path


def test_pages_have_no_code_and_no_style_in_attributes(web: Web, hidden: int) -> None:
    client = web.as_user("admin")
    for _, path in _routes(web, HIDDEN, hidden):
        answer = client.get(path)
        is_page = answer.headers.get("content-type", "").startswith("text/html")
        if not is_page or path.endswith("report.html"):
            continue
        assert not re.search(r"<[^>]+\s(style|on\w+)=", answer.text), path
        assert re.findall(r"<script[^>]*>", answer.text) == ['<script src="/twinstream/static/twinstream.js">']
        assert not re.search(r'(src|href)="(https?:)?//', answer.text), path


def test_hostile_values_stay_text(web: Web, made: Made) -> None:
    bad = results.HOSTILE
    generation = made.generation("page_views", made.define("page_views"), 12, 3)
    made.hold(generation, 13, bad)
    made.fail(generation, 14, 14, bad)
    made.ledger.journal.add(generation, "paused", bad)
    id = made.reconcile(generation, "page_views", lambda: replace(results.hostile(), pipeline="page_views"))
    (made.pipelines / "other.py").write_text(f"raise ValueError({bad!r})\n")
    client = web.as_user("admin")
    paths = (
        "", "pipelines/page_views", "pipelines/page_views/txids/13", "pipelines/page_views/txids/14",
        f"pipelines/page_views/reconciliations/{id}", f"pipelines/page_views/reconciliations/{id}/report.html",
        f"pipelines/{quote(bad, safe='')}", f"tab?dag_id={quote(bad)}", f"?q={quote(bad)}",
    )  # fmt: skip
    for path in paths:
        page = client.get(path).text
        assert "<script>alert" not in page, path
        assert "&amp;49" not in page, f"{path}: the braces were taken for a template"
    shown = client.get(f"pipelines/page_views/reconciliations/{id}").text
    assert "&lt;script&gt;alert(1)" in shown
    assert "&amp;{{ 7*7 }}" in shown


def test_a_hostile_pipeline_in_the_ledger_is_only_text(web: Web, made: Made) -> None:
    made.generation(results.HOSTILE, "h", 4)
    page = web.as_user("admin").get("").text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    "path",
    [
        "../../../../ledger.db",
        "validations/page_views/../../../../ledger.db",
        "validations/page_views/../hidden/secret.html",
        "validations/page_views/link.html",
        "/etc/passwd",
        "validations/page_views/../../../data_docs/validations/hidden/secret.html",
        "validations/page_views",
        "index.html",
    ],
)
def test_data_docs_never_lead_out_of_the_pipelines_folder(web: Web, made: Made, path: str) -> None:
    made.generation("page_views", made.define("page_views"), 3)
    site = made.home / "great_expectations" / "data_docs"
    mine, other = site / "validations" / "page_views", site / "validations" / "hidden"
    for folder in (mine, other):
        folder.mkdir(parents=True)
    (other / "secret.html").write_text("secret")
    (site / "index.html").write_text("all pipelines")
    (mine / "link.html").symlink_to(other / "secret.html")
    (mine / "good.html").write_text("<p>good</p>")
    client = web.as_user("admin")
    assert client.get("pipelines/page_views/data-docs/validations/page_views/good.html").text == "<p>good</p>"
    answer = client.get(f"pipelines/page_views/data-docs/{quote(path, safe='')}")
    assert answer.status_code == 404
    assert page_file(made.home, "page_views", path) is None
    assert "secret" not in answer.text


def test_links_respect_airflows_base_path(made: Made, web: Web) -> None:
    made.generation("page_views", made.define("page_views"), 3)
    web.outer.root_path = "/team/airflow"
    client = web.as_user("viewer")
    page = client.get("http://testserver/team/airflow/twinstream/").text
    assert 'href="/team/airflow/twinstream/pipelines/page_views"' in page
    assert 'data-airflow="/team/airflow"' in page
