"""The pages in Chromium, with made-up pipelines: how they look, what they do, and whether everybody can use them.

Airflow's own API is stood in for by a few lines here, so that what the browser asks of it can be seen; the pages inside
a real Airflow are in tests/airflow/e2e.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, HTTPException, Request

from bin.lib.local.browser import Browser, browser
from bin.lib.local.processes import free_port
from tests.airflow.definitions import ROOT
from tests.airflow.web.conftest import mounted, settings_of
from tests.airflow.web.made import MINUTE, Made
from tests.unit.report import results

AXE = "axe-core@4.14.0"
PICTURES = ROOT / "build" / "screenshots"
PAGES = {
    "overview": "/",
    "pipeline": "/pipelines/page_views",
    "streamed": "/pipelines/clicks",
    "transaction": "/pipelines/page_views/txids/61",
    "reconciliation": "/pipelines/page_views/reconciliations/20",
    "problem": "/pipelines/nothing",
}


class Site:
    """A server with the pages, and what was asked of Airflow's API."""

    def __init__(self, outer: FastAPI, token: str, made: Made) -> None:
        self.port = free_port()
        self.made = made
        self.token = token
        self.asked: list[tuple[str, str, Any]] = []
        self.refuses: list[int] = []
        """Statuses of the next answers that are refusals."""
        self._answer(outer)
        self._server = uvicorn.Server(uvicorn.Config(outer, "127.0.0.1", self.port, log_level="error"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/twinstream"

    def __enter__(self) -> Site:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)

    def _answer(self, outer: FastAPI) -> None:
        @outer.api_route("/api/v2/{path:path}", methods=["GET", "POST", "PATCH"])
        async def airflow(request: Request, path: str) -> dict[str, Any]:
            if self.refuses and not path.endswith("hitlDetails"):
                raise HTTPException(self.refuses.pop(0), "not now")
            if request.method != "GET":
                self.asked.append((request.method, path, await request.json()))
            return {
                "hitl_details": [],
                "dag_id": path.split("/")[1],
                "is_paused": True,
                "dag_run_id": "run 1",
                "state": "success",
                "note": "All is well",
                "task_instances": [],
            }

        @outer.get("/favicon.ico")
        def icon() -> None:
            """Every browser asks for it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, auth_manager: Any) -> Iterator[Site]:
    made = Made(tmp_path_factory.mktemp("site"))
    views = made.generation("page_views", made.define("page_views"), 60, 8)
    made.hold(views, 61, "Nobody spends less than nothing: 3 of 4812 rows, such as -4.50")
    made.fail(views, 62, 62, "SourceChanged: The file day/000062.json has another size than when it was planned.")
    for n in range(20, 0, -1):
        kind = results.different if n in (1, 8) else results.equal
        made.reconcile(views, "page_views", kind, ago=n * 90 * MINUTE, sealed=True)
    orders = made.generation("orders", made.define("orders"), 9)
    made.reconcile(orders, "orders", sealed=True)
    clicks = made.generation("clicks", made.define("clicks"), 30)
    made.stream(clicks)
    made.reconcile(clicks, "clicks", sealed=True)
    settings = settings_of(made)
    web = mounted(lambda: settings, auth_manager)
    with Site(web.outer, web.token("user"), made) as found:
        yield found


@pytest.fixture
def tab(site: Site, tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path) as found:
        found.look()
        found.cookie("_token", site.token, site.address)
        yield found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_readable_wide_and_narrow_light_and_dark(site: Site, tab: Browser, page: str) -> None:
    for width in (390, 1280, 1920):
        for theme in ("light", "dark"):
            tab.look(width, 900, theme)
            tab.open(site.address + PAGES[page])
            tab.screenshot(PICTURES / f"{page}-{width}-{theme}.png")
            tab.screenshot(PICTURES / f"{page}-{width}-{theme}-top.png", whole=False)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{width} wide scrolls sideways"
    expected = 6 if page == "problem" else 0
    assert len(tab.errors) == expected, tab.errors


def test_the_theme_is_the_systems_where_airflow_says_nothing(site: Site, tab: Browser) -> None:
    colours = set()
    for theme in ("light", "dark"):
        tab.look(theme=theme)
        tab.open(site.address + "/")
        colours.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == {"rgb(255, 255, 255)", "rgb(22, 29, 45)"}


def test_searching_keeps_the_field_and_narrows_list_tiles_and_address(site: Site, tab: Browser) -> None:
    tab.open(site.address + "/")
    tab.evaluate("document.querySelector('[name=q]').focus()")
    tab.send("Input.insertText", text="ord")
    tab.wait("location.search === '?q=ord' && document.querySelectorAll('.line').length === 1")
    assert tab.evaluate("document.activeElement.value") == "ord"
    assert tab.evaluate("document.querySelector('.tile b').textContent") == "1"


def test_times_are_in_the_readers_zone_with_the_exact_time_on_hover(site: Site, tab: Browser) -> None:
    tab.send("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    tab.open(site.address + "/pipelines/page_views/txids/3")
    time = tab.evaluate("(({textContent, title}) => [textContent, title])(document.querySelector('time'))")
    assert "ago" in time[0]
    assert "GMT+9" in time[1]


def test_a_cell_of_the_timeline_leads_to_its_txids(site: Site, tab: Browser) -> None:
    tab.open(site.address + "/pipelines/page_views")
    tab.evaluate(
        "document.querySelectorAll('.timeline rect')[4].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    tab.wait("location.search === '?first=5&last=5' && document.querySelectorAll('#live-txids tbody tr').length === 1")


def test_an_action_says_what_will_happen_and_is_a_run_of_the_dag(site: Site, tab: Browser) -> None:
    site.asked.clear()
    tab.open(site.address + "/pipelines/page_views/txids/61")
    tab.evaluate("[...document.querySelectorAll('[data-action]')][1].click()")
    assert "This cannot be taken back" in tab.evaluate("document.querySelector('dialog').textContent")
    tab.wait("!document.querySelector('dialog button.main').disabled")
    tab.evaluate("document.querySelector('dialog button.main').click()")
    assert tab.evaluate("document.querySelector('dialog [name=reason]').matches(':invalid')"), "a reason is needed"
    assert site.asked == []
    tab.evaluate("document.querySelector('dialog [name=reason]').value = 'a test'")
    tab.evaluate("document.querySelector('dialog button.main').click()")
    tab.wait("document.querySelector('dialog .progress.good')?.textContent.includes('All is well')")
    assert site.asked == [
        ("PATCH", "dags/page_views__control", {"is_paused": False}),
        (
            "POST",
            "dags/page_views__control/dagRuns",
            {"logical_date": None, "conf": {"action": "discard", "txid": 61, "reason": "a test"}},
        ),
    ]


def test_a_dialog_asks_again_when_airflow_fails_and_starts_no_second_run(site: Site, tab: Browser) -> None:
    site.asked.clear()
    tab.open(site.address + "/pipelines/page_views/txids/61")
    site.refuses[:] = [503]
    tab.evaluate("[...document.querySelectorAll('[data-action]')][0].click()")
    tab.wait("document.querySelector('dialog .progress').textContent.includes('Trying again')")
    tab.wait("!document.querySelector('dialog button.main').disabled")
    tab.evaluate("document.querySelectorAll('dialog input[required]').forEach(one => { one.value = 'a test'; })")
    tab.evaluate("document.querySelector('dialog [name=unpause]').checked = false")
    tab.evaluate(
        "(ask => { window.fetch = (at, how) => how.method === 'GET' && at.includes('dagRuns')"
        " ? Promise.reject(new Error('no connection.')) : ask(at, how); })(window.fetch)"
    )
    tab.evaluate("document.querySelector('dialog button.main').click()")
    tab.wait("document.querySelector('dialog .progress').textContent.includes('The run goes on')")
    assert tab.evaluate("document.querySelector('dialog button.main').disabled")
    assert [one[0] for one in site.asked] == ["POST"]


def test_who_may_not_is_told_once(site: Site, tab: Browser) -> None:
    tab.open(site.address + "/pipelines/page_views/txids/61")
    site.refuses[:] = [403]
    tab.evaluate("[...document.querySelectorAll('[data-action]')][0].click()")
    tab.wait("document.querySelector('dialog .progress').textContent === 'Airflow does not let you do this.'")
    assert tab.evaluate("document.querySelector('dialog button.main').disabled")


def test_a_refresh_brings_what_is_new_and_keeps_the_place(site: Site, tab: Browser) -> None:
    tab.look(1280, 400)
    tab.open(site.address + "/")
    tab.evaluate("scrollTo(0, 120)")
    tab.evaluate("document.querySelector('.line.good h2 a').focus({preventScroll: true})")
    generation = site.made.ledger.generations.current("orders")
    assert generation is not None
    site.made.ledger.journal.add(generation.id, "paused", "the source is being moved")
    try:
        tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        tab.wait("document.querySelector('.line.warn')?.textContent.includes('the source is being moved')")
        assert tab.evaluate("[scrollY, document.activeElement.textContent]") == [120, "orders"]
    finally:
        site.made.ledger.journal.add(generation.id, "resumed", "it is there")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is missing, which brings axe-core: bin/test installs it.")
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run([npm, "pack", AXE, "--silent"], cwd=folder, check=True, timeout=120)
    (archive,) = folder.glob("axe-core-*.tgz")
    with tarfile.open(archive) as content:
        found = content.extractfile("package/axe.min.js")
        assert found is not None
        return found.read().decode()


@pytest.mark.parametrize("page", PAGES)
def test_everybody_can_use_the_pages(site: Site, tab: Browser, axe: str, page: str) -> None:
    tab.send("Page.setBypassCSP", enabled=True)
    for theme in ("light", "dark"):
        tab.look(theme=theme)
        tab.open(site.address + PAGES[page])
        tab.evaluate(f"{axe}; 0")
        found = tab.evaluate("axe.run().then(r => r.violations.map(v => [v.impact, v.help, v.nodes[0].html]))")
        assert found == [], json.dumps(found, indent=1)
