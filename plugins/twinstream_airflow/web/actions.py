"""What a person can ask for. Each is a run of one of the pipeline's DAGs, which the browser asks of Airflow itself."""

from __future__ import annotations

from collections.abc import Mapping

from twinstream_airflow.web.guards import Visitor, dag_of
from twinstream_airflow.web.models import Action, Field

_REASON = Field(
    name="reason", label="Reason (kept in the ledger and in Airflow's audit log)", kind="text", required=True
)


def of_pipeline(
    visitor: Visitor, name: str, *, paused: bool, topics: bool = False, streamed: bool = False
) -> list[Action]:
    """What can be done with a pipeline as a whole."""
    other = (
        _control(visitor, name, "resume", "Resume", "Micro-batches go on with the oldest open txid.")
        if paused
        else _control(visitor, name, "pause", "Pause", "No micro-batch plans or drains anything until it is resumed.")
    )
    return [
        _run(visitor, name, "microbatch", "drain", "Drain",
             "Plans what is new in the source as txids and drains them, exactly once. With nothing to do no Spark is "
             "started.", {}),
        _run(visitor, name, "recompute", "recompute", "Recompute",
             "Computes the result anew from the source, up to the newest committed txid. The stream is not touched.",
             {}),
        reconcile(visitor, name),
        repair(visitor, name, None),
        other,
        _control(visitor, name, "reinject", "Reinject",
                 "Brings mended records back as a new txid. The file is read where the task runs.",
                 Field(name="file", label="File of mended records", kind="text", required=True)),
        *(_modes(visitor, name, streamed=streamed) if topics or streamed else []),
    ]  # fmt: skip


def _modes(visitor: Visitor, name: str, *, streamed: bool) -> list[Action]:
    """Who runs it: one button hands it over to the other mode."""
    to, words = ("microbatch", "micro-batches") if streamed else ("continuous", "a continuous query")
    says = f"Whoever runs it ends at the next frontier, and {words} go on from there: no gap, no repeat."
    hand = _control(
        visitor, name, "handover", f"Hand over to {words}", says if streamed else says.replace(" go", " goes")
    )
    hand = hand.model_copy(update={"conf": {**hand.conf, "to": to}, "wakes": [dag_of(name, to)]})
    stop = _control(visitor, name, "stop", "Stop", "The continuous query ends at the next frontier.")
    return [hand, stop] if streamed else [hand]


def of_txid(visitor: Visitor, name: str, txid: int, *, held: bool, failed: bool) -> list[Action]:
    """What can be decided about a txid that a gate holds or that failed."""
    found = []
    if held:
        says = f"Txid {txid} passes the gate and commits with the drain that follows at once."
        found.append(_control(visitor, name, "release", f"Release txid {txid}", says, txid=txid))
    if held or failed:
        says = (
            f"Txid {txid} is given up: it commits empty, its records are counted as discarded, and the recomputation "
            "leaves them out. This cannot be taken back; its records can be reinjected later."
        )
        found.append(_control(visitor, name, "discard", f"Discard txid {txid}", says, txid=txid))
    return found


def reconcile(visitor: Visitor, name: str) -> Action:
    """Compare again."""
    return _run(
        visitor, name, "reconcile", "reconcile", "Reconcile",
        "Compares what was streamed with a batch recomputation at the newest committed txid, row by row. The stream "
        "goes on meanwhile.", {},
        Field(name="fresh", label="Recompute in any case", kind="boolean", value=False),
    )  # fmt: skip


def repair(visitor: Visitor, name: str, frontier: int | None) -> Action:
    """Look first, then mend once a person approves."""
    conf = {} if frontier is None else {"frontier": frontier}
    return _run(
        visitor, name, "repair", "repair", "Repair",
        "Looks at the finding again and shows what would change. Nothing is changed before a person approves it, "
        "unless the pipeline's policy is to repair by itself. Then the batch result becomes the newest base, and "
        "another reconciliation proves that it helped.", conf,
        Field(name="dry_run", label="Dry run: only show what would change", kind="boolean", value=True),
    )  # fmt: skip


def _control(
    visitor: Visitor, name: str, action: str, label: str, says: str, *fields: Field, txid: int | None = None
) -> Action:
    conf: dict[str, object] = {"action": action} if txid is None else {"action": action, "txid": txid}
    return _run(visitor, name, "control", action, label, says, conf, *fields, _REASON)


def _run(
    visitor: Visitor,
    name: str,
    family: str,
    action: str,
    label: str,
    says: str,
    conf: Mapping[str, object],
    *fields: Field,
) -> Action:
    return Action(
        name=action, label=label, dag_id=dag_of(name, family), says=says, conf=dict(conf), fields=list(fields),
        allowed=visitor.may_run(name, family),
    )  # fmt: skip
