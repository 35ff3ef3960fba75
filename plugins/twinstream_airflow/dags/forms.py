"""The fields of the trigger forms."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import Param

from twinstream_airflow.operators.control import ACTIONS

_HIGHEST = 2**53


def frontier() -> Param:
    """Which txid to work at."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=_HIGHEST,
        title="Frontier",
        description="Work as of this txid. Leave it empty for the newest committed one.",
    )


def batch_records() -> Param:
    """How large the txids are that are planned now."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=1_000_000_000,
        title="Records per txid",
        description="About how many records one txid holds, for what is planned now. Leave it empty for the "
        "definition's batch_records.",
    )


def max_batches() -> Param:
    """How much to drain."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=1_000_000,
        title="At most so many txids",
        description="Stop after so many txids; the next run goes on. Leave it empty to drain all that is there.",
    )


def fresh() -> Param:
    """Whether to recompute in any case."""
    return Param(
        False,
        type="boolean",
        title="Recompute in any case",
        description="Recompute even if there is a batch result at this frontier already.",
    )


def dry_run() -> Param:
    """Whether to stop before anything is changed."""
    return Param(
        False, type="boolean", title="Dry run", description="Only show what would change; nobody is asked to approve."
    )


def force() -> Param:
    """Whether to repair what a repair would hide."""
    return Param(
        False,
        type="boolean",
        title="Repair all the same",
        description="Also where the cause is one that a repair would hide: a changed source, a changed definition, "
        "a result that is not deterministic.",
    )


def promote() -> Param:
    """Whether the new generation becomes the current one."""
    return Param(
        True,
        type="boolean",
        title="Promote",
        description="When the new generation is built, switch readers to it. Without this it stays beside the current "
        "one; run this DAG again to promote it.",
    )


def action() -> Param:
    """What to decide."""
    return Param(
        "release",
        type="string",
        enum=list(ACTIONS),
        title="Action",
        description="release: let a held txid pass the gate. discard: give a txid up, it commits empty. reinject: "
        "bring mended records back as a new txid. pause, resume: stop and go on with micro-batches.",
    )


def txid() -> Param:
    """The txid to decide about."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=_HIGHEST,
        title="Txid",
        description="The txid to release or discard.",
    )


def file() -> Param:
    """The file with mended records."""
    return Param(
        None,
        type=["null", "string"],
        maxLength=4096,
        title="File",
        description="For reinject: a file of mended records, one a line, as `twinstream dead --export` wrote them. "
        "It is read where the task runs.",
    )


def pipelines(names: Sequence[str]) -> Param:
    """Which pipelines to look after."""
    return Param(
        [],
        type="array",
        items={"type": "string", "enum": list(names)},
        examples=list(names),
        title="Pipelines",
        description="Only these pipelines. Leave it empty for all of them.",
    )


def backups() -> Param:
    """How many backups of the ledger to keep."""
    return Param(
        7,
        type="integer",
        minimum=1,
        maximum=1000,
        title="Backups to keep",
        description="How many backups of the ledger are kept; older ones are deleted.",
    )


def reason() -> Param:
    """Why; it is kept."""
    return Param(
        type="string",
        minLength=3,
        maxLength=1000,
        title="Reason",
        description="Why. It is kept in the ledger and in Airflow's audit log.",
    )
