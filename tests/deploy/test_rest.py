"""Airflow's REST API as the demo and the tests use it."""

from __future__ import annotations

from typing import Any

import pytest

from bin.lib.local.rest import Rest


def test_a_dag_that_comes_while_they_are_listed_ends_the_listing_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It pushes one that was listed before onto the next page."""
    rest = Rest("http://127.0.0.1:9", "admin", "a password")
    known = ["b", "c"]

    def call(_method: str, _path: str, **query: Any) -> dict[str, Any]:
        page = known[query["offset"] : query["offset"] + query["limit"]]
        if "a" not in known:
            known.insert(0, "a")
        return {"dags": [{"dag_id": name} for name in page]}

    monkeypatch.setattr(rest, "call", call)
    assert rest.dags() >= {"b", "c"}
