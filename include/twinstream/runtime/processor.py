"""What the runtime asks of whoever processes groups; Spark does it for real, a small stand-in does it in the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from twinstream.transaction import Batch, Staged, StagedFile, Tally


class Processor(Protocol):
    """Turns planned ranges into staged files."""

    @property
    def in_order(self) -> bool:
        """Whether everything before a group must be committed when it is processed: its watermark, its ids."""

    def process(self, batches: Sequence[Batch], staging: str, watermark: int | None) -> Staged:
        """Processes a group into a staging folder."""

    def late_tallies(self, files: Sequence[StagedFile], late_before: Mapping[int, int]) -> dict[int, tuple[Tally, int]]:
        """Tally and rows of the late records among staged ones, per txid."""

    def stage_late(
        self, batches: Sequence[Batch], staging: str, late_before: Mapping[int, int]
    ) -> Sequence[StagedFile]:
        """Stages the late records themselves."""

    def gate(self, files: Sequence[StagedFile]) -> str | None:
        """What the pipeline's gate has against the staged rows, or None."""
