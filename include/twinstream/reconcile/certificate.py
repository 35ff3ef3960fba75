"""The certificate: one JSON per reconciled frontier that says what was proven, and can be checked again later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinstream.errors import Refused, ReportError
from twinstream.failpoints import durable
from twinstream.ledger import Run
from twinstream.reconcile.result import Difference, Reconciliation
from twinstream.sinks.sync import sync_file, sync_folder
from twinstream.transaction import Batch, canonical_json

FORMAT = 1


@dataclass(frozen=True)
class Check:
    """One thing that was checked again: True it holds, False it does not, None it cannot be checked any more."""

    says: str
    holds: bool | None
    detail: str = ""


def certificate(result: Reconciliation, batches: Sequence[Batch], run: Run | None) -> dict[str, Any]:
    """What the reconciliation proves, sealed with a digest of its own text."""
    content: dict[str, Any] = {
        "certificate": FORMAT,
        "pipeline": result.pipeline,
        "generation": result.generation,
        "frontier": result.frontier,
        "verdict": result.verdict.value,
        "reconciliation": result.id,
        "reconciled_at": result.started_at,
        "scanned_in_full_at": result.scanned_in_full_at,
        "scanned_in_full_to": result.scanned_in_full_to,
        "definition_hash": result.definition_hash,
        "ranges": ranges(batches),
        "accounting": result.accounting.to_dict(),
        "differences": {kind.value: count for kind, count in result.comparison.counts.items() if count},
        "stream": {"rows": result.comparison.stream.rows, "digest": result.comparison.stream.digest},
        "batch": {
            "rows": result.comparison.batch.rows,
            "digest": result.comparison.batch.digest,
            "table": run.folder if run else None,
        },
        "expectations": [
            {"suite": one.suite, "says": one.says, "severity": one.severity, "success": one.success}
            for one in result.expectations
        ],
        "versions": dict(result.versions),
    }
    return content | {"seal": seal(content)}


def ranges(batches: Sequence[Batch]) -> dict[str, Any]:
    """Which slices of the source the result was made from."""
    listed = canonical_json([[batch.txid, batch.range_digest, batch.range.records] for batch in batches])
    return {
        "txids": len(batches),
        "records": sum(batch.range.records for batch in batches),
        "bytes": sum(batch.range.size for batch in batches),
        "digest": hashlib.blake2b(listed.encode(), digest_size=16).hexdigest(),
    }


def seal(content: Mapping[str, Any]) -> str:
    """A digest of the certificate's own text, without the seal."""
    unsealed = {name: value for name, value in content.items() if name != "seal"}
    return hashlib.blake2b(canonical_json(unsealed).encode(), digest_size=32).hexdigest()


def certificate_path(home: Path, pipeline: str, generation: str, frontier: int) -> Path:
    """Where the certificate of a frontier is kept."""
    return home / "certificates" / pipeline / generation / f"{int(frontier)}.json"


def save(home: Path, content: Mapping[str, Any]) -> Path:
    """Writes the certificate; it appears whole or not at all."""
    path = certificate_path(home, content["pipeline"], content["generation"], int(content["frontier"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with durable("certificate.write"):
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        sync_file(temporary)
        temporary.replace(path)
        sync_folder(path.parent)
    return path


def load(home: Path, pipeline: str, generation: str, frontier: int | None) -> dict[str, Any]:
    """The certificate of a generation's frontier (default: the newest)."""
    folder = certificate_path(home, pipeline, generation, 0).parent
    known = sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()) if folder.is_dir() else []
    if not known or (frontier is not None and frontier not in known):
        raise Refused(
            f"{pipeline} has no certificate{'' if frontier is None else f' for txid {frontier}'}.",
            next_step=f"Run `twinstream reconcile {pipeline}`.",
        )
    path = certificate_path(home, pipeline, generation, known[-1] if frontier is None else frontier)
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"The certificate {path} cannot be read: {error}.") from error
    return content


def check_text(content: Mapping[str, Any], batches: Sequence[Batch], definition_hash: str) -> list[Check]:
    """What can be checked without Spark: the seal, the ranges, the books, the definition."""
    counts = content.get("differences", {})
    differing = sum(n for kind, n in counts.items() if kind != Difference.LATE.value)
    equal = content["stream"]["digest"] == content["batch"]["digest"] or differing > 0 or content["verdict"] != "equal"
    return [
        Check("The certificate is as it was written", content.get("seal") == seal(content)),
        Check("Its digests are those of its verdict", equal),
        Check("The ledger has the same ranges for all its txids", content["ranges"] == ranges(batches)),
        Check(
            "The definition is still the same",
            content["definition_hash"] == definition_hash,
            "" if content["definition_hash"] == definition_hash else "the result was made by an earlier definition",
        ),
    ]
