"""Guarantees are computed from the parts of a pipeline, never claimed; the weakest part decides and is named."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from twinstream.errors import DefinitionError

if TYPE_CHECKING:
    from twinstream.pipeline import Pipeline


class Delivery(IntEnum):
    """How often an effect of a record can be seen at the end, weakest first."""

    AT_MOST_ONCE = 0
    AT_LEAST_ONCE = 1
    EXACTLY_ONCE = 2

    @property
    def text(self) -> str:
        return self.name.lower().replace("_", "-")

    @classmethod
    def parse(cls, text: str) -> Delivery:
        names = {delivery.text: delivery for delivery in cls}
        if text not in names:
            raise DefinitionError(
                f"delivery={text!r} is not known.", next_step=f"Use one of {', '.join(sorted(names))}."
            )
        return names[text]


@dataclass(frozen=True)
class Part:
    """What one part of the pipeline delivers, and why."""

    part: str
    delivery: Delivery
    reason: str


@dataclass(frozen=True)
class Guarantee:
    """The end-to-end answer."""

    delivery: Delivery
    weakest: Part
    parts: tuple[Part, ...]


_SOURCES = {
    "files": Part("source", Delivery.EXACTLY_ONCE, "files are replayable: a range is logged and read again as it was"),
    "kafka": Part(
        "source", Delivery.EXACTLY_ONCE, "offsets are replayable: a range is logged and read again as it was, as long "
        "as the topic keeps it",
    ),
}  # fmt: skip
_SINKS = {
    "delta": Part("sink", Delivery.EXACTLY_ONCE, "Delta commits rows, txid and epoch in one atomic step"),
}


def guarantee_of(pipeline: Pipeline) -> Guarantee:
    """Derives the guarantee from source, operator, mode and sink."""
    parts = (
        _SOURCES[pipeline.source.kind],
        Part("prepare", Delivery.EXACTLY_ONCE, "prepare is row-wise and deterministic: a replay gives the same rows"),
        Part("operator", Delivery.EXACTLY_ONCE, "partials are kept per txid and merged by an associative operator"),
        Part("mode", Delivery.EXACTLY_ONCE, "micro-batches commit in txid order, fenced by epoch"),
        _SINKS[pipeline.sink.kind],
    )
    weakest = min(parts, key=lambda part: part.delivery)
    return Guarantee(weakest.delivery, weakest, parts)


def check_delivery(pipeline: Pipeline) -> Guarantee:
    """Refuses a definition that asks for more than its parts can deliver."""
    wanted = Delivery.parse(pipeline.delivery)
    found = guarantee_of(pipeline)
    if found.delivery < wanted:
        raise DefinitionError(
            f"{pipeline.name} asks for {wanted.text}, but its {found.weakest.part} delivers only "
            f"{found.delivery.text}: {found.weakest.reason}.",
            next_step=f"Ask for delivery={found.delivery.text!r}, or change the {found.weakest.part}.",
        )
    return found
