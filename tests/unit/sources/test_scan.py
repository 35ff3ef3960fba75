"""One look through a file: its records counted as Spark will count them, whatever its lines look like."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import suppress
from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.permissions import without_rights
from twinstream.errors import SourceUnreadable
from twinstream.sources import scan
from twinstream.sources.scan import fingerprint, sample_json, scan_json_lines

BOM = b"\xef\xbb\xbf"


def naive(content: bytes) -> int:
    """Lines end at \\n; those with nothing but blanks do not count; a byte order mark at the start is nothing."""
    return sum(1 for line in content.removeprefix(BOM).split(b"\n") if line.strip(b" \t\r"))


def write(folder: Path, content: bytes, name: str = "x.json") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


CASES = {
    "empty": (b"", 0),
    "only a line end": (b"\n", 0),
    "one": (b'{"a":1}\n', 1),
    "no line end at the end": (b'{"a":1}\n{"a":2}', 2),
    "CRLF": (b'{"a":1}\r\n{"a":2}\r\n', 2),
    "CRLF, none at the end": (b'{"a":1}\r\n{"a":2}', 2),
    "CR at the end": (b'{"a":1}\n{"a":2}\r', 2),
    "CR alone is no line end": (b'{"a":1}\r{"a":2}\n', 1),
    "blank lines": (b'\n{"a":1}\n\n \t \n{"a":2}\n\n', 2),
    "blank lines with CR": (b'\r\n{"a":1}\r\n\r\n', 1),
    "BOM": (BOM + b'{"a":1}\n{"a":2}\n', 2),
    "BOM alone": (BOM, 0),
    "BOM and a blank line": (BOM + b' \n{"a":1}\n', 1),
    "BOM later on": (b'{"a":1}\n' + BOM + b"\n", 2),
    "half a BOM": (b'\xef\xbb\n{"a":1}\n', 2),
    "array": (b'[{"a":1},{"a":2}]\n', 1),
    "array over lines": (b'[\n{"a":1},\n{"a":2}\n]\n', 4),
    "garbage behind an object": (b'{"a":1} oops\n{"a":2}\n', 2),
    "two objects on a line": (b'{"a":1}{"a":2}\n', 1),
    "words": (b"hello\nworld\n", 2),
    "braces in strings": (b'{"a":"}{"}\n{"a":"{"}\n', 2),
    "nested": (b'{"a":{"b":{}}}\n{"a":{"b":1}}\n', 2),
    "spaces around": (b'  {"a":1}  \n', 1),
    "NUL and other control letters": (b"\x00\n\x0b\n\x0c\n", 3),
    "not UTF-8": (b"\xff\xfe\n\xc3\n", 2),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
@pytest.mark.parametrize("case", CASES)
def test_records_are_lines_with_something_on_them(
    tmp_path: Path, case: str, name: str, chunk: int, nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_CHUNK", chunk)
    content, records = CASES[case]
    path = write(tmp_path, content, name)
    found = scan_json_lines(path, nested)
    assert found.records == records == naive(content)
    assert found.fingerprint == xxhash.xxh3_128(path.read_bytes()).hexdigest() == fingerprint(path)


PLAIN = {
    "one": True,
    "no line end at the end": True,
    "CRLF": True,
    "CRLF, none at the end": True,
    "CR at the end": True,
    "blank lines": False,
    "blank lines with CR": False,
    "BOM": False,
    "BOM alone": False,
    "array": False,
    "array over lines": False,
    "garbage behind an object": False,
    "two objects on a line": False,
    "spaces around": False,
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("case", PLAIN)
def test_the_fast_reader_is_for_files_with_one_object_a_line(tmp_path: Path, case: str, nested: bool) -> None:
    assert scan_json_lines(write(tmp_path, CASES[case][0]), nested).plain is PLAIN[case]


def test_garbage_before_a_last_carriage_return_is_not_plain(tmp_path: Path) -> None:
    assert not scan_json_lines(write(tmp_path, b'{"a":1}\n{"a":2} x\r'), False).plain


@pytest.mark.parametrize(
    ("content", "plain"),
    [
        (b'{"a":{"b":1}}\n{"a":{"b":{}}}\n', True),
        (b'{"a":{"b":1}}{"a":{"b":2}}\n', False),
        (b'{"a":{}} {"a":2}\n{"a":{}}\n', False),
        (b'{"a":[{"b":1},{"b":2}]}\n', True),
        (b'{"a":{"b":1}}\n{"a":{"b":1}\n', False),
        (b'{"a":{"b":1}\n}{"a":{"b":1}}\n', False),
        (b'{"a":"{text}","b":{}}\n', True),
        (b'{"a":"}"}\n{"a":"{"}\n', False),
    ],
)
@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_nested_objects_are_plain_if_nothing_is_behind_them(
    tmp_path: Path, content: bytes, plain: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_CHUNK", chunk)
    assert scan_json_lines(write(tmp_path, content), nested=True).plain is plain


def test_compressed_files_are_never_plain(tmp_path: Path) -> None:
    assert not scan_json_lines(write(tmp_path, b'{"a":1}\n', "x.json.gz"), False).plain


pieces = st.sampled_from(
    [b"\n", b"\r\n", b"\r", b" ", b"\t", b"{", b"}", b'{"a":1}', b'{"a":{"b":2}}', b"[", b"]", b",", b'"', b"x", b"\\",
     BOM, b"\xef", b"\xff", b"\x00"]
)  # fmt: skip
contents = st.lists(pieces, max_size=25).map(b"".join)


@given(content=contents, chunk=st.integers(1, 9), nested=st.booleans(), packed=st.booleans())
@settings(max_examples=600)
def test_the_count_is_the_naive_one_for_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, chunk: int, nested: bool, packed: bool
) -> None:
    path = write(tmp_path_factory.getbasetemp(), content, "random.json.gz" if packed else "random.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_CHUNK", chunk)
        found = scan_json_lines(path, nested)
        patch.setattr(scan, "_CHUNK", 1 << 20)
        assert found == scan_json_lines(path, nested), "borders of chunks change nothing"
    assert found.records == naive(content)
    assert found.fingerprint == xxhash.xxh3_128(path.read_bytes()).hexdigest()


@given(content=contents)
@settings(max_examples=600)
def test_a_plain_file_hides_nothing_from_the_fast_reader(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """Every line gives one record, and no line that starts with an object goes on behind it."""
    path = write(tmp_path_factory.getbasetemp(), content, "random.json")
    if not scan_json_lines(path, nested=False).plain:
        return
    lines = content.split(b"\n")
    for line in lines[:-1] if not lines[-1] else lines:
        assert line.strip(b" \t\r"), "no line is blank"
        assert not line.startswith((b"[", BOM, b" ", b"\t"))
        if line.startswith(b"{") and b"}" in line:
            assert line.index(b"}") == len(line.removesuffix(b"\r")) - 1


def test_a_file_of_many_chunks_is_counted_right(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines = [json.dumps({"a": "x" * chance.randint(0, 5_000)}).encode() for _ in range(2_000)]
    path = write(tmp_path, b"\n".join(lines) + b"\n")
    assert path.stat().st_size > 4 << 20
    assert (scan_json_lines(path, False).records, scan_json_lines(path, False).plain) == (2_000, True)


def test_one_endless_line_is_counted_without_keeping_it(tmp_path: Path) -> None:
    """A JSON array on one line, as exports often are: time and memory must not grow with its square."""
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.write(b"[")
        for _ in range(64):
            file.write(b'{"a":1},' * (1 << 17))
    assert scan_json_lines(path, False).records == 1


@pytest.mark.parametrize("damage", ["cut", "bytes", "not gzip", "empty"])
def test_a_damaged_compressed_file_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(json.dumps([random.Random(1).random() for _ in range(5_000)]).encode())
    content = {
        "cut": whole[: len(whole) // 2],
        "bytes": whole[:100] + b"\xff" * 400 + whole[500:],
        "not gzip": b'{"a":1}\n',
        "empty": b"\x1f\x8b",
    }[damage]
    path = tmp_path / "x.json.gz"
    path.write_bytes(content)
    with pytest.raises(SourceUnreadable, match=r"x\.json\.gz cannot be read") as error:
        scan_json_lines(path, False)
    assert "belongs to no txid" in error.value.untouched
    with suppress(SourceUnreadable):
        assert sample_json(path) == [], "a sample need not see the damage, but must not break on it"


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"a":1}\n')
    for look in (lambda: scan_json_lines(path, False), lambda: sample_json(path), lambda: fingerprint(path)):
        with without_rights(path), pytest.raises(SourceUnreadable, match="Permission denied"):
            look()


def test_a_sample_has_records_from_head_and_tail(tmp_path: Path) -> None:
    lines = [json.dumps({"number": number, "text": "x" * 200}) for number in range(5_000)]
    numbers = [record["number"] for record in sample_json(write(tmp_path, "\n".join(lines).encode()))]
    assert numbers[:50] == list(range(50))
    assert numbers[-1] == 4_999


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5_000, b"\xff", b"NaN", b"{", b'"x"'])
def test_a_sample_leaves_out_what_does_not_parse(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, line + b'\n{"a":1}\n')
    assert sample_json(path) in ([{"a": 1}], [])


def test_a_sample_of_a_file_with_a_byte_order_mark_has_its_first_record(tmp_path: Path) -> None:
    assert sample_json(write(tmp_path, BOM + b'{"a":1}\r\n{"a":2}')) == [{"a": 1}, {"a": 2}]
