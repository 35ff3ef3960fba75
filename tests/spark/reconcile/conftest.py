"""Here it matters how Spark computes: everything is compiled, as it is outside of the tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _as_in_production(compiled: None) -> None:
    return
