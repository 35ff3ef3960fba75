"""Numbers as people read them."""

from __future__ import annotations

import pytest

from twinstream.report.words import rate


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.004, "< 0.1"), (0.34, "0.3"), (9.96, "10.0"), (10.4, "10"), (12_345.6, "12\u202f346")],
)
def test_a_slow_rate_is_not_nothing(value: float, text: str) -> None:
    assert rate(value) == text
