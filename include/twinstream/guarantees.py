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
    nearest: str = ""
    """What comes nearest to more than that."""


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
    "kafka": Part(
        "sink", Delivery.AT_LEAST_ONCE, "rows are produced after their txid is committed, and again with the same "
        "headers if the runner dies before it can remember that: made exactly-once by Deduplicate where Twinstream "
        "reads the topic, and by any reader that drops a generation, txid and sequence that it has seen",
        nearest="and deduplicate where the topic is read; DeltaSink delivers exactly-once by itself",
    ),
}  # fmt: skip
REAL_TIME = Part(
    "mode", Delivery.AT_LEAST_ONCE, "rows are sent before there is a txid, and again after a crash what was sent since "
    "the last checkpoint: made exactly-once by Deduplicate, or any reader, by record id",
)  # fmt: skip
"""What the mode delivers where a pipeline is served in real time, whatever its other parts do."""


def guarantee_of(pipeline: Pipeline) -> Guarantee:
    """Derives the guarantee from source, operator, mode and sink."""
    parts = (
        _SOURCES[pipeline.source.kind],
        *_repeats(pipeline),
        Part("prepare", Delivery.EXACTLY_ONCE, "prepare is row-wise and deterministic: a replay gives the same rows"),
        Part("operator", Delivery.EXACTLY_ONCE, "partials are kept per txid and merged by an associative operator"),
        Part("mode", Delivery.EXACTLY_ONCE, "micro-batches commit in txid order, fenced by epoch"),
        _SINKS[pipeline.sink.kind],
    )
    weakest = min(parts, key=lambda part: part.delivery)
    return Guarantee(weakest.delivery, weakest, parts)


def _repeats(pipeline: Pipeline) -> tuple[Part, ...]:
    """What deduplication adds: where the source repeats records, as producers do that try again, each counts once."""
    if pipeline.deduplicate is None:
        return ()
    reason = (
        f"records that come again with the same {pipeline.record_id} within {pipeline.deduplicate.horizon} count once: "
        "whoever writes the source may do so at-least-once"
    )
    return (Part("ids", Delivery.EXACTLY_ONCE, reason),)


def check_delivery(pipeline: Pipeline) -> Guarantee:
    """Refuses a definition that asks for more than its parts can deliver."""
    wanted = Delivery.parse(pipeline.delivery)
    found = guarantee_of(pipeline)
    if found.delivery < wanted:
        raise DefinitionError(
            f"{pipeline.name} asks for {wanted.text}, but its {found.weakest.part} delivers only "
            f"{found.delivery.text}: {found.weakest.reason}.",
            next_step=f"Ask for delivery={found.delivery.text!r}"
            + (f" {found.weakest.nearest}." if found.weakest.nearest else f", or change the {found.weakest.part}."),
        )
    return found
