"""What a drain tells while it works; the command line draws it, tests and Airflow listen or ignore it."""

from __future__ import annotations

from collections.abc import Sequence

from twinstream.transaction import Batch, Manifest


class Progress:
    """Hears what happens and does nothing with it."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def planned(self, txids: int, records: int) -> None:
        """New txids are in the ledger."""

    def backlog(self, txids: int, records: int) -> None:
        """How much there is to do."""

    def started(self, batches: Sequence[Batch]) -> None:
        """A group is being processed."""

    def committed(self, manifests: Sequence[Manifest], seconds: float) -> None:
        """A group is in the sink; `seconds` is what the commit took."""
