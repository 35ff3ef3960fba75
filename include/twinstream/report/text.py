"""The report for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from twinstream.reconcile.result import Comparison, Difference, Reconciliation, Sample, Verdict
from twinstream.report import words
from twinstream.report.heat import LEVELS, level_of

_TONES = {Verdict.EQUAL: "bold green", Verdict.WARNING: "bold yellow", Verdict.DIFFERENT: "bold red"}
_SEVERE = {"critical": "red", "warning": "yellow"}
_BLOCKS = " ▁▃▅▆█"
_CELLS = 64
_SAMPLES = 10
_TXIDS = 8

assert len(_BLOCKS) == LEVELS + 1


def to_text(result: Reconciliation, width: int = 100) -> str:
    """The report as plain text, for files and logs."""
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(render(result))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def render(result: Reconciliation) -> RenderableType:
    """The report for a Rich console: verdict first, details after it, nothing of the data read as markup."""
    return Group(*_parts(result))


def render_comparison(what: str, compared: Comparison) -> RenderableType:
    """Two tables compared, without a pipeline around them."""
    return Group(*_comparison_parts(what, compared))


def _comparison_parts(what: str, compared: Comparison) -> Iterator[RenderableType]:
    one, other = compared.stream, compared.batch
    if compared.equal:
        yield _plain(f"{what}: all {words.count(one.rows, 'row')} are equal.", _TONES[Verdict.EQUAL])
        return
    yield _plain(f"{what}: {words.kinds(compared.counts)}.", _TONES[Verdict.DIFFERENT])
    yield _plain(f"{words.count(one.rows, 'row')} in {one.name}, {words.number(other.rows)} in {other.name}.", "dim")
    yield from _section("Where the differences lie", *_heat(compared))
    yield from _section("Differing rows", *_samples(compared))


def _parts(result: Reconciliation) -> Iterator[RenderableType]:
    yield _plain(f"{result.pipeline} · {result.kind} · {words.when(result.started_at)}", "dim")
    yield _plain(words.sentence(result), _TONES[result.verdict])
    yield _plain(words.scanned(result), "dim")
    yield from _section("", _tiles(result))
    if result.causes:
        yield from _section("Causes that were found", *(_plain(f"- {one}") for one in result.causes))
    if result.accounting.read.count:
        yield from _section("Where every record went", _books(result))
    if result.comparison.differing_buckets:
        yield from _section("Where the differences lie", *_heat(result.comparison))
    if result.txids:
        yield from _section("Differences by txid", _txids(result))
    if result.comparison.samples:
        yield from _section("Differing rows", *_samples(result.comparison))
    if result.expectations:
        yield from _section("Expectations", *_expectations(result))
    if result.next_steps:
        steps = (_plain(f"{place}. {step}") for place, step in enumerate(result.next_steps, 1))
        yield from _section("What to do next", *steps)


def _section(title: str, *parts: RenderableType) -> Iterator[RenderableType]:
    yield Text("")
    if title:
        yield Text(title, "bold")
    yield from parts


def _plain(text: str, style: str = "") -> Text:
    return Text(_narrow(text), style, overflow="fold")


def _narrow(text: str) -> str:
    """Spaces are all alike in a terminal, and control characters of the data must not reach it."""
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "\ufffd" for sign in text)


def _grid(*justify: str) -> Table:
    table = Table.grid(padding=(0, 2))
    for side in justify:
        table.add_column(justify="right" if side == "right" else "left", overflow="fold")
    return table


def _tiles(result: Reconciliation) -> Table:
    table = _grid("right", "left")
    for tile in words.tiles(result):
        note = f"{tile.label}, {tile.note}" if tile.note else tile.label
        table.add_row(_plain(words.number(tile.value), "red" if tile.tone == "bad" else ""), _plain(note))
    return table


def _books(result: Reconciliation) -> Table:
    table = _grid("right", "left")
    table.add_row(_plain(words.number(result.accounting.read.count)), Text("read"))
    for _, word, many in words.books(result.accounting):
        table.add_row(_plain(words.number(many), "" if many else "dim"), Text(f"  {word}", "" if many else "dim"))
    return table


def _heat(compared: Comparison) -> Iterator[Text]:
    step = max(1, -(-len(compared.heat) // _CELLS))
    cells = [sum(compared.heat[at : at + step]) for at in range(0, len(compared.heat), step)]
    hottest = max(cells, default=0)
    yield Text("▕" + "".join(_BLOCKS[level_of(rows, hottest)] for rows in cells) + "▏", "red")
    yield _plain(f"{words.number(compared.differing_buckets)} of {words.count(compared.buckets, 'bucket')}", "dim")


def _txids(result: Reconciliation) -> Table:
    table = _grid("right", "left", "left")
    ranked = sorted(result.txids, key=lambda one: (-sum(one.counts.values()), one.txid))
    for one in ranked[:_TXIDS]:
        table.add_row(
            _plain(words.number(one.txid)), _plain(words.when(one.batch_time)), _plain(words.kinds(one.counts))
        )
    if len(ranked) > _TXIDS:
        table.add_row("", _plain(f"and {words.count(len(ranked) - _TXIDS, 'txid')} more", "dim"), "")
    return table


def _samples(compared: Comparison) -> Iterator[RenderableType]:
    samples = compared.samples
    table = _grid("left", "left", "left")
    for sample in samples[:_SAMPLES]:
        key = ", ".join(f"{name}={_value(text)}" for name, text in sample.key.items())
        style = "dim" if sample.kind is Difference.LATE else "red"
        table.add_row(_plain(sample.kind.value, style), _plain(key), _changes(sample))
    yield table
    total = words.differing(compared)
    if total > _SAMPLES:
        yield _plain(f"{words.number(min(len(samples), _SAMPLES))} of {words.count(total, 'row')} shown", "dim")


def _changes(sample: Sample) -> Text:
    if not sample.stream_rows or not sample.batch_rows:
        cells = (f"{one.column} {_value(one.batch if not sample.stream_rows else one.stream)}" for one in sample.cells)
    else:
        cells = (
            f"{one.column} {_value(one.stream)}, should be {_value(one.batch)}"
            + (f" ({one.difference})" if one.difference else "")
            for one in sample.cells
        )
    parts = ["; ".join(cells)]
    if sample.stream_rows > 1 or sample.batch_rows > 1:
        parts.append(f"{words.number(sample.stream_rows)} rows, should be {words.number(sample.batch_rows)}")
    if sample.txids:
        parts.append(f"txid {', '.join(map(str, sample.txids))}")
    return _plain(" · ".join(part for part in parts if part))


def _expectations(result: Reconciliation) -> Iterator[RenderableType]:
    broken = [one for one in words.by_weight(result.expectations) if not one.success]
    met = len(result.expectations) - len(broken)
    yield _plain(f"{words.number(met)} of {words.number(len(result.expectations))} met")
    table = _grid("left", "left", "left")
    for one in broken:
        found = f"found {one.observed}" if one.observed else ""
        table.add_row(_plain(f"✗ {one.severity}", _SEVERE.get(one.severity, "dim")), _plain(one.says), _plain(found))
    if broken:
        yield table


def _value(text: str | None) -> str:
    return "null" if text is None else text
