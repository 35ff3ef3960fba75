"""What a person decides about a pipeline, with a reason that stays in the ledger and in Airflow's audit log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from twinstream_airflow.notes import note
from twinstream_airflow.operators.base import number
from twinstream_airflow.operators.skipping import SkippingOperator
from twinstream_airflow.pausing import pause, resume

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinstream.engine import Engine

ACTIONS = ("release", "discard", "reinject", "pause", "resume")
_THEN_DRAIN = ("release", "discard", "reinject", "resume")


class ControlOperator(SkippingOperator):
    """Releases or discards a txid, brings mended records back, pauses or resumes. Needs no Spark."""

    template_fields: Sequence[str] = ("pipeline", "action", "txid", "file", "reason")

    def __init__(
        self, *, action: str, reason: str, txid: int | str | None = None, file: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.action = action
        self.reason = reason
        self.txid = txid
        self.file = file

    def work(self, context: Context) -> dict[str, Any]:
        if self.action not in ACTIONS:
            raise AirflowFailException(f"There is no action {self.action!r}; use one of {', '.join(ACTIONS)}.")
        reason = self.reason.strip()
        if not reason:
            raise AirflowFailException("The reason is empty. Say why, for whoever reads the ledger later.")
        with self.engine() as engine:
            done = self._decide(engine, reason)
        note(context, f"{done}: {reason}")
        result = {"action": self.action, "reason": reason, "done": done}
        if self.action not in _THEN_DRAIN:
            self.skip_all(context, result)
        return result

    def _decide(self, engine: Engine, reason: str) -> str:
        if self.action in ("release", "discard"):
            txid = number(self.txid)
            if txid is None:
                raise AirflowFailException(f"To {self.action} needs a txid. Nothing was changed.")
            (engine.release if self.action == "release" else engine.discard)(self.pipeline, txid, reason)
            return f"Txid {txid} {self.action}{'d' if self.action == 'release' else 'ed'}"
        if self.action == "reinject":
            if not self.file or self.file == "None":
                raise AirflowFailException("To reinject needs a file of mended records. Nothing was changed.")
            done = engine.reinject(self.pipeline, Path(self.file), reason, count_late=True)
            return f"{done.records} records reinjected as txid {done.txid}"
        generation = engine.generation(engine.definition(self.pipeline), create=True)
        (pause if self.action == "pause" else resume)(engine.ledger, generation.id, reason)
        return f"{self.pipeline} {self.action}d"
