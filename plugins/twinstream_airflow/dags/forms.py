"""The fields of the trigger forms."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import Param

from twinstream_airflow.operators.control import ACTIONS

_HIGHEST = 2**53
_MEANINGS = {
    "release": "let a held txid pass its gate",
    "discard": "give a txid up; it commits empty",
    "reinject": "bring mended records back as a new txid",
    "pause": "nothing runs until it is resumed",
    "resume": "go on after a pause",
    "stop": "whoever runs it ends at the next frontier",
    "handover": "stop, and the other mode goes on from there",
}


def frontier() -> Param:
    """Which txid to work at."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=_HIGHEST,
        title="Frontier",
        description="Work as of this txid, the number of a transaction. Leave it empty for the newest committed one.",
    )


def batch_records() -> Param:
    """How large the txids are that are planned now."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=1_000_000_000,
        title="Records per txid",
        description="About how many records make one txid (transaction), for what this run plans. Leave it empty for "
        "batch_records of the definition.",
    )


def max_batches() -> Param:
    """How much to drain."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=1_000_000,
        title="Txids at most",
        description="End after so many txids (transactions); the next run goes on. Leave it empty to drain all that is "
        "there.",
    )


def every(usual: str) -> Param:
    """How often a continuous query looks for new records."""
    return Param(
        usual,
        type="string",
        pattern=r"^\s*\d+\s*(microsecond|millisecond|second|minute|hour|day|week)s?\s*$",
        title="Look every",
        description="How often the query looks for new records: a number and a unit, for example 5 seconds or "
        "200 milliseconds.",
    )


def seconds() -> Param:
    """The deadline of a continuous run."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=_HIGHEST,
        title="End after (seconds)",
        description="End at the next frontier after so many seconds. Leave it empty to stream until it is stopped.",
    )


def drain() -> Param:
    """Whether a continuous run ends with what is there."""
    return Param(
        False,
        type="boolean",
        title="Drain and end",
        description="Commit what is in the topics now, then end, instead of waiting for more.",
    )


def fresh() -> Param:
    """Whether to recompute in any case."""
    return Param(
        False,
        type="boolean",
        title="Recompute in any case",
        description="Also where there is a batch result at this frontier already, which is used otherwise.",
    )


def dry_run() -> Param:
    """Whether to stop before anything is changed."""
    return Param(
        True,
        type="boolean",
        title="Dry run",
        description="Only report what would change. Switch it off to repair, after approval where that is the policy.",
    )


def force() -> Param:
    """Whether to repair what a repair would hide."""
    return Param(
        False,
        type="boolean",
        title="Whatever the cause",
        description="Repair also where that hides the cause, which is refused otherwise: a changed source, a changed "
        "definition, a result that is not deterministic.",
    )


def promote() -> Param:
    """Whether the new generation becomes the current one."""
    return Param(
        True,
        type="boolean",
        title="Promote",
        description="When the new generation is built, switch readers to it. Otherwise it stays beside the current one "
        "until this DAG runs again with this switched on.",
    )


def action() -> Param:
    """What to decide; nothing is chosen beforehand."""
    return Param(
        type="string",
        enum=list(ACTIONS),
        values_display={name: f"{name}: {_MEANINGS[name]}" for name in ACTIONS},
        title="Action",
        description="What to do with the pipeline. The fields below the reason are for some actions only.",
    )


def to(modes: Sequence[str]) -> Param:
    """Who goes on after a handover."""
    return Param(
        None,
        type=["null", "string"],
        enum=[None, *modes],
        values_display={"null": "–"} | {mode: mode for mode in modes},
        title="Hand over to",
        description="For handover: the mode that goes on.",
    )


def txid() -> Param:
    """The txid to decide about."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=_HIGHEST,
        title="Txid",
        description="For release and discard: the number of the transaction.",
    )


def file() -> Param:
    """The file with mended records."""
    return Param(
        None,
        type=["null", "string"],
        maxLength=4096,
        title="File",
        description="For reinject: the path of a file of mended records, one a line, as 'twinstream dead --export' "
        "writes them. It is read where the task runs.",
    )


def pipelines(names: Sequence[str]) -> Param:
    """Which pipelines to look after."""
    return Param(
        None,
        type=["null", "array"],
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


def reason(kept: str) -> Param:
    """Why; it is kept."""
    return Param(
        type="string",
        minLength=3,
        maxLength=1000,
        title="Reason",
        description=f"Why, in a few words, for whoever asks later. It is kept in {kept}.",
    )
