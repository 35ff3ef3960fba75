"""The scan tells whether any number could have more digits after its point than a decimal column keeps."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.sources.scan import scan_json_lines
from twinstream.sources.wide import smallest_scale


def fits(folder: Path, text: str, scale: int | None = 2) -> bool:
    file = folder / "events.json"
    file.write_text(text)
    return scan_json_lines(file, nested=False, scale=scale).fits


@pytest.mark.parametrize(
    "record",
    [
        '{"a":1}', '{"a":1.2}', '{"a":-1.25}', '{"a":"1.25"}', '{"a":1.25 }', '{"a":1e5}', '{"a":null}', "{}",
        '{"at":"2026-01-01T00:00:00.123456Z","a":1.25}', '{"at":"2026-01-01T00:00:00.123456+01:00"}',
        '{"at":"2026-01-01T00:00:00.123456-05:00"}', '{"at":"2026-01-01 00:00:00.123456"}',
        '{"id":"0f3e-4512-9abc","a":1}', '{"page":"home-page.html"}',
    ],
)  # fmt: skip
def test_numbers_with_few_digits_and_moments_fit(tmp_path: Path, record: str) -> None:
    assert fits(tmp_path, record + "\n")
    assert fits(tmp_path, f'{{"a":1}}\n{record}')


@pytest.mark.parametrize(
    "record",
    [
        '{"a":1.255}', '{"a":"1.255"}', '{"a":1.2550}', '{"a":0.00000000001}', '{"a":1.255 }', '{"a":1e-5}',
        '{"a":15E-3}', '{"a":"1e-5"}', '{"a":1.e-5}', '{"a":1.234e1}', '{"a":[1.255]}', '{"a":1.255',
        '{"1":69.113}', '{"a:1":69.113}', '{"7:": 69.113}', '{"at":"00:00:00.123456","a":69.113}', '[1,2]69.113',
    ],
)  # fmt: skip
def test_a_number_with_more_digits_does_not(tmp_path: Path, record: str) -> None:
    assert not fits(tmp_path, record + "\n")
    assert not fits(tmp_path, f'{{"a":1}}\n{record}')


@given(value=st.decimals(allow_nan=False, allow_infinity=False, places=None), scale=st.integers(0, 6))
def test_a_number_that_would_be_rounded_is_never_overlooked(
    tmp_path_factory: pytest.TempPathFactory, value: Decimal, scale: int
) -> None:
    folder = tmp_path_factory.mktemp("digits")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    kept = value if exponent >= -scale else Decimal(int(value.scaleb(scale))).scaleb(-scale)
    for text in {str(value), f"{value:e}", f"{value:E}", f"{value:f}" if abs(exponent) < 60 else str(value)}:
        if kept != value:
            assert not fits(folder, f'{{"a":{text}}}\n', scale), text
            assert not fits(folder, f'{{"a":"{text}"}}\n', scale), text
    assert digits


def test_a_zero_byte_is_left_to_the_careful_reader(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_bytes(b'{"a":1}\n{\0"a":1}\n')
    assert not scan_json_lines(file, nested=False).plain


def test_the_smallest_scale_decides(tmp_path: Path) -> None:
    assert smallest_scale({"a": "decimal(12,2)", "b": "array<decimal(18,6)>"}) == 2
    assert smallest_scale({"a": "string"}) is None
    assert smallest_scale({"a": "decimal(12,2)", "b": "tinyint"}) is None, "a tinyint is read wider in any case"
    assert not fits(tmp_path, '{"a":1}\n', None)
