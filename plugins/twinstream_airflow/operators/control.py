"""What a person decides about a pipeline, with a reason that stays in the ledger and in Airflow's audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

ACTIONS = ("release", "discard", "reinject", "pause", "resume", "stop", "handover")
_THEN_DRAIN = ("release", "discard", "reinject", "resume")
FREE_SECONDS = 480.0
"""How long a handover waits until whoever runs the pipeline has come to a frontier."""
MODES = ("microbatch", "continuous")


class ControlOperator(SkippingOperator):
    """Releases or discards a txid, brings mended records back, pauses, resumes, stops, hands over. Needs no Spark.

    What follows is left out, but for the task that starts who goes on: `goes_on` names it for each mode.
    """

    template_fields: Sequence[str] = ("pipeline", "action", "txid", "file", "to", "reason")

    def __init__(
        self, *, action: str, reason: str, goes_on: Mapping[str, str], txid: int | str | None = None,
        file: str | None = None, to: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        self.goes_on = dict(goes_on)
        self.to = to
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
        mode = "microbatch" if self.action in _THEN_DRAIN else self.to if self.action == "handover" else None
        if left_out := [task for one, task in self.goes_on.items() if one != mode]:
            self.skip_some(context, result, left_out)
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
        if self.action == "handover":
            return self._hand_over(engine, reason)
        if self.action == "stop":
            return f"{self.pipeline} asked to stop" if engine.stop(self.pipeline, reason) else "Nobody was at work"
        generation = engine.generation(engine.definition(self.pipeline), create=True)
        (pause if self.action == "pause" else resume)(engine.ledger, generation.id, reason)
        return f"{self.pipeline} {self.action}d"

    def _hand_over(self, engine: Engine, reason: str) -> str:
        """Ends whoever runs the pipeline at a frontier; the task that follows starts who goes on from there."""
        if self.to not in self.goes_on:
            raise AirflowFailException(
                f"{self.pipeline} cannot be handed over to {self.to!r}; it has {', '.join(self.goes_on)}. Nothing was "
                "changed."
            )
        engine.generation(engine.definition(self.pipeline), create=True)
        engine.stop(self.pipeline, f"{reason}: handed over to {self.to}")
        engine.wait_until_free(self.pipeline, FREE_SECONDS)
        return f"{self.pipeline} handed over to {self.to}"
