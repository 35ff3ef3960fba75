"""Lengths of time as people write them."""

from __future__ import annotations

import pytest

from twinstream.errors import DefinitionError
from twinstream.operators import Fixed, fixed


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 minute", 60_000_000),
        ("10 minutes", 600_000_000),
        (" 1 Hour 30 minutes ", 5_400_000_000),
        ("90seconds", 90_000_000),
        ("250 milliseconds", 250_000),
        ("1 microsecond", 1),
        ("1 day", 86_400_000_000),
        ("2 weeks", 1_209_600_000_000),
    ],
)
def test_lengths(text, micros):
    assert fixed(text) == Fixed(micros)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "minute",
        "1",
        "1 month",
        "1 year",
        "-1 minute",
        "0 seconds",
        "1.5 hours",
        "1 minute, 2",
        "s 1",
        "40000 days",
        None,
        5,
    ],
)
def test_what_is_no_length(text):
    with pytest.raises(DefinitionError) as caught:
        fixed(text)
    assert caught.value.next_step


@pytest.mark.parametrize("micros", [0, -1, True, 1.5, "60", 10**19])
def test_windows_have_a_positive_whole_length(micros):
    with pytest.raises(DefinitionError):
        Fixed(micros)
