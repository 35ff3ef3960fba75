"""The pages inside a booted Airflow, in Chromium: from damage to proof by clicks only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bin.lib.local.browser import Frame, browser
from tests.airflow.definitions import ROOT
from tests.airflow.e2e.test_repair import SETTLES, damage
from tests.airflow.e2e.world import World, wait_for

pytestmark = pytest.mark.timeout(1500)
PICTURES = ROOT / "build" / "screenshots"


def test_damage_is_seen_followed_to_its_row_repaired_and_proven_by_clicks_only(world: World, tmp_path: Path) -> None:
    world.write("shown", 0, 2)
    assert world.run("shown__microbatch")[1] == "success"
    damage(world, "shown")
    world.rest.unpause("shown__repair")
    assert world.rest.import_errors() == []
    with browser(tmp_path) as tab:
        tab.look(1280, 900)
        tab.sign_in(world.airflow.address, world.airflow.password)
        tab.open(f"{world.airflow.address}/")
        tab.wait("[...document.querySelectorAll('a')].some(a => a.textContent.includes('Twinstream'))", 60)
        tab.evaluate("[...document.querySelectorAll('a')].find(a => a.textContent.includes('Twinstream')).click()")
        page = Frame(tab)
        page.click("h2 a", "shown")
        page.click("[data-action]", "Reconcile")
        page.click("dialog button.main")
        page.says("Different as of txid 2", "dialog", 300)
        tab.screenshot(PICTURES / "reconciled.png", whole=False)
        page.click("dialog button", "Close")

        page.click("nav a", "Pipelines")
        page.says("differ as of txid 2")
        tab.screenshot(PICTURES / "overview-different.png", whole=False)
        page.click(".findings a", "differ as of txid 2")
        page.says("Differing rows")
        tab.screenshot(PICTURES / "reconciliation-different.png", whole=False)
        page.click(".sample header a")
        page.says("It closes")
        page.click("[href*='/runs/']", "run and log")
        tab.wait("location.pathname.startsWith('/dags/shown__microbatch/runs/')")

        tab.open(f"{world.airflow.address}/plugin/twinstream/twinstream/pipelines/shown")
        (repair,) = wait_for(lambda: world.rest.runs("shown__repair"), 60, "the repair that was called for")
        wait_for(lambda: world.asks("shown__repair", repair["dag_run_id"], "approve"), 300, "the question")
        time.sleep(SETTLES)
        page.click("[data-approvals] button", "Approve", 60)
        page.says("Equal as of txid 2", "[data-approvals]", 300)
        page.click("nav a", "Pipelines")
        page.wait("[...document.querySelectorAll('.line.good h2')].some(h => h.textContent.includes('shown'))")
        tab.screenshot(PICTURES / "overview-equal.png", whole=False)
    world.assert_true("shown", 2)


def test_pages_follow_airflows_theme_and_a_dag_has_a_tab(world: World, tmp_path: Path) -> None:
    with browser(tmp_path) as tab:
        tab.look(1280, 900)
        tab.sign_in(world.airflow.address, world.airflow.password)
        tab.open(f"{world.airflow.address}/plugin/twinstream")
        page = Frame(tab)
        page.says("pipelines")
        for theme in ("dark", "light"):
            tab.evaluate(f"localStorage.setItem('theme', '{theme}')")
            tab.open(f"{world.airflow.address}/plugin/twinstream?{theme}")
            page.wait(f"document.documentElement.classList.contains('{theme}')")
            tab.screenshot(PICTURES / f"in-airflow-{theme}.png", whole=False)
        tab.open(f"{world.airflow.address}/dags/shown__reconcile/plugin/twinstream-of-dag")
        page.wait("document.querySelector('h1').textContent.includes('shown')")
        tab.open(f"{world.airflow.address}/dags/twinstream__freshness/plugin/twinstream-of-dag")
        page.wait("document.querySelector('h1').textContent.includes('Pipelines')")
