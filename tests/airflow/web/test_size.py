"""Pages stay quick and small, however much there is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.airflow.web.conftest import Web, mounted, settings_of
from tests.airflow.web.made import MINUTE, Made
from tests.unit.report import results

LARGEST = 300_000
"""Bytes that a page may weigh, with the style and the script."""


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is asked of the ledger meanwhile."""
    found: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "mode=ro" in str(connection.engine.url):
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory, auth_manager: Any) -> dict[int, tuple[Web, int]]:
    """The same pipeline with 100 and with 100,000 txids, and the newest of its reconciliations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWINSTREAM_SQLITE_SYNCHRONOUS", "off")
        return {many: _made(tmp_path_factory.mktemp(f"of-{many}"), many, auth_manager) for many in (100, 100_000)}


def _made(folder: Path, many: int, manager: Any) -> tuple[Web, int]:
    made = Made(folder)
    generation = made.generation("page_views", made.define("page_views"), many, 20)
    made.hold(generation, many + 1, "a reason")
    judged = [
        made.reconcile(generation, "page_views", results.different if n % 9 == 0 else results.equal, ago=n * MINUTE)
        for n in range(max(60, many // 100), 0, -1)
    ]
    settings = settings_of(made)
    return mounted(lambda: settings, manager), judged[-1]


PAGES: dict[str, Callable[[int], str]] = {
    "overview": lambda _: "",
    "pipeline": lambda _: "pipelines/page_views",
    "transaction": lambda _: "pipelines/page_views/txids/42",
    "reconciliation": lambda id: f"pipelines/page_views/reconciliations/{id}",
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_takes_at_most_three_times_as_long_with_100_000_txids(
    sizes: dict[int, tuple[Web, int]], page: str
) -> None:
    took: dict[int, list[float]] = {many: [] for many in sizes}
    for turn in range(9):
        for many, (web, newest) in sizes.items():
            client = web.as_user("viewer")
            began = time.perf_counter()
            assert client.get(PAGES[page](newest)).status_code == 200
            if turn > 1:
                took[many].append(time.perf_counter() - began)
    small, large = (min(seconds) for seconds in took.values())  # the rest of a second belongs to other tests
    assert large <= 3 * small, f"{page}: {small * 1000:.0f} ms with 100 txids, {large * 1000:.0f} ms with 100,000"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_weighs_less_than_300_kb(sizes: dict[int, tuple[Web, int]], page: str) -> None:
    for web, newest in sizes.values():
        client = web.as_user("viewer")
        parts = (PAGES[page](newest), "static/twinstream.css", "static/twinstream.js")
        assert sum(len(client.get(part).content) for part in parts) < LARGEST


def test_the_overview_of_50_pipelines_asks_the_ledger_no_more_than_that_of_one(web: Web, made: Made) -> None:
    client = web.as_user("viewer")
    asked = {}
    for many in (1, 50):
        for number in range(many if many > 1 else 0, 0, -1):
            made.reconcile(made.generation(f"p{number}", "h", 12, 3), f"p{number}")
        if many == 1:
            made.generation("first", "h", 12, 3)
        with statements() as found:
            assert client.get("api/pipelines").json()["total"] == (1 if many == 1 else 51)
        asked[many] = len(found)
    assert asked[50] == asked[1] <= 20
