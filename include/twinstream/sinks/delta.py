"""The Delta sink: partials, bases, manifests, dead letters and late rows of a generation in one Delta table.

Spark writes Parquet files into a staging folder inside the table's folder; the driver names them in the Delta log by
the `deltalake` library. One table for all kinds of rows means one atomic commit: what belongs to a txid becomes
visible together, and there is no side table that could run ahead. docs/protocol.md has the argument.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinstream.durations import parse_duration
from twinstream.errors import CommitConflict, DefinitionError, LedgerSinkMismatch, SettingsError, StagedFileMissing
from twinstream.failpoints import durable
from twinstream.sinks.base import Base, GroupCommit, SinkState, check_base, check_commit, check_fence, mismatch
from twinstream.sinks.sync import sync_file, sync_folder, sync_tree
from twinstream.transaction import Manifest, StagedFile

PARTITIONS = ["_kind", "_base"]
OUR_COLUMNS = {
    "_kind": "string",
    "_base": "int",
    "_txid": "bigint",
    "_manifest": "string",
    "_reason": "string",
    "_file": "string",
    "_raw": "string",
    "_line": "bigint",
    "_occurrences": "bigint",
}
COMMIT_TRIES = 50
NOTES_MANY = 48
NOTES_LARGE = 16 * 1024 * 1024
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\\")
"""The `deltalake` library takes these in a path for something else."""


@dataclass(frozen=True)
class DeltaSink:
    """Where a pipeline's result goes: `path` is a plain Delta table for other engines, refreshed by fold."""

    path: str
    retain: str = "7 days"
    """How long partials and bases that a newer base has made unnecessary stay readable as of their txid."""

    kind = "delta"

    def __post_init__(self) -> None:
        if not self.path.strip():
            raise DefinitionError("DeltaSink needs a path.", next_step='Write for example DeltaSink("tables/NAME").')
        parse_duration(self.retain, "DeltaSink(retain=…)")

    @property
    def retain_seconds(self) -> float:
        return parse_duration(self.retain, "DeltaSink(retain=…)") / 1_000_000


@dataclass(frozen=True)
class Snapshot:
    """One version of the table: everything a reader needs comes from here, so that it fits together."""

    version: int
    state: SinkState
    kept_from: int
    """Results as of a lower txid were cleaned away."""
    files: Mapping[str, tuple[LiveFile, ...]]
    """Live files by kind."""

    def all_files(self) -> list[LiveFile]:
        return [file for files in self.files.values() for file in files]


@dataclass(frozen=True)
class LiveFile:
    """A file that a snapshot names."""

    path: str
    size: int
    base: int | None
    first_txid: int | None
    last_txid: int | None


class DeltaStore:
    """One generation's table."""

    def __init__(self, folder: Path, generation: str, columns: Mapping[str, str]) -> None:
        self.folder = folder
        self.generation = generation
        self._columns = OUR_COLUMNS | {n: t for n, t in columns.items() if n not in OUR_COLUMNS}
        self._table: Any = None

    def exists(self) -> bool:
        from deltalake import DeltaTable

        return DeltaTable.is_deltatable(str(self.folder))

    def create(self) -> None:
        """Makes the table unless it is there; two processes may try at once."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        from twinstream.sinks.types import delta_schema

        if _MISREAD.search(str(self.folder)):
            raise SettingsError(
                f"The folder {self.folder} cannot hold a Delta table: it has a backslash, or a % before two digits.",
                next_step="Set TWINSTREAM_HOME, or the path of the sink, to a folder with a plainer name.",
            )
        if self.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with durable("sink.create"):
                DeltaTable.create(
                    str(self.folder),
                    schema=delta_schema(self._columns),
                    partition_by=PARTITIONS,
                    configuration={
                        "delta.enableExpiredLogCleanup": "false",
                        "delta.checkpointInterval": "1000000",
                        "twinstream.generation": self.generation,
                    },
                    raise_if_key_not_exists=False,
                )
                sync_tree(self.folder)
        except DeltaError:
            if not self.exists():
                raise

    def state(self) -> SinkState:
        return self._state(self._refresh())

    def fence(self, epoch: int) -> SinkState:
        for _ in range(COMMIT_TRIES):
            table = self._refresh()
            state = self._state(table)
            check_fence(state, epoch)
            try:
                self._write("sink.fence", table, [], {"epoch": epoch})
            except CommitConflict:
                continue
            return SinkState(state.txid, epoch, state.base)
        raise self._gave_up()

    def commit(self, group: GroupCommit) -> bool:
        for _ in range(COMMIT_TRIES):
            table = self._refresh()
            state = self._state(table)
            if not check_commit(state, group, self.manifests):
                return False
            self.require(group.files)
            notes = self._write_rows(
                "manifest",
                group.files,
                [(m.txid, manifest_json) for m in group.manifests if (manifest_json := m.to_json())],
            )
            actions = [self._add(file) for file in (*group.files, notes)]
            try:
                self._write("sink.commit", table, actions, {"txid": group.last, "epoch": group.epoch})
            except CommitConflict:
                continue
            return True
        raise self._gave_up()

    def add_base(self, base: Base, files: Sequence[StagedFile]) -> bool:
        for _ in range(COMMIT_TRIES):
            table = self._refresh()
            if not check_base(self._state(table), base):
                return False
            self.require(files)
            note = self._write_rows("bases", files, [(base.frontier, base.to_json())])
            actions = [self._add(file, base.number) for file in files] + [self._add(note)]
            try:
                self._write("sink.base", table, actions, {"base": base.number})
            except CommitConflict:
                continue
            return True
        raise self._gave_up()

    def replace(
        self, removed: Mapping[str, Sequence[LiveFile]], added: Sequence[StagedFile], versions: Mapping[str, int]
    ) -> None:
        """Takes files out of the table, and others in, in one commit; what is out stays on disk until it is cleaned."""
        from deltalake.transaction import RemoveAction

        now = int(time.time() * 1000)
        for _ in range(COMMIT_TRIES):
            there = {file.path for file in self.snapshot().all_files()}
            actions: list[Any] = [
                RemoveAction(path=file.path, data_change=True, deletion_timestamp=now, size=file.size,
                             partition_values=_partition(kind, file.base))
                for kind, files in removed.items() for file in files if file.path in there
            ]  # fmt: skip
            actions += [self._add(file) for file in added]
            try:
                self._write("sink.replace", self._table, actions, versions)
            except CommitConflict:
                continue
            return
        raise self._gave_up()

    def manifests(self, first: int, last: int) -> list[Manifest]:
        return read_manifests(self.folder, self.snapshot(), first, last)

    def bases(self) -> list[Base]:
        return read_bases(self.folder, self.snapshot())

    def snapshot(self) -> Snapshot:
        """The newest version, with all its live files."""
        table = self._refresh()
        files: dict[str, list[LiveFile]] = {}
        for row in _rows(table.get_add_actions(flatten=True)):
            base = row.get("partition._base")
            live = LiveFile(
                path=row["path"],
                size=row["size_bytes"],
                base=None if base is None else int(base),
                first_txid=row.get("min._txid"),
                last_txid=row.get("max._txid"),
            )
            files.setdefault(row["partition._kind"], []).append(live)
        kept_from = int(table.transaction_version(f"{self.generation}:kept") or 0)
        by_kind = {kind: tuple(found) for kind, found in files.items()}
        return Snapshot(table.version(), self._state(table), kept_from, by_kind)

    def new_staging(self) -> str:
        return f"_data/{secrets.token_hex(8)}"

    def remove_staging(self, staging: str) -> None:
        """Deletes a staging folder; if the table names a file in it, the ledger is wrong, and nothing is touched.

        Looks through a handle of its own: another thread may be between its checks and its commit on this one.
        """
        look = DeltaStore(self.folder, self.generation, {})
        if look.exists() and any(file.path.startswith(f"{staging}/") for file in look.snapshot().all_files()):
            raise mismatch(f"The ledger calls {staging} left over, but the sink names files in it")
        with durable("sink.remove-staging"):
            shutil.rmtree(self.folder / staging, ignore_errors=True)

    def join_notes(self) -> None:
        """Joins many small manifest files into one, so that reading them stays quick."""
        small = [file for file in self.snapshot().files.get("manifest", ()) if file.size < NOTES_LARGE]
        if len(small) < NOTES_MANY:
            return
        rows = sorted((row["_txid"], row["_manifest"]) for file in small for row in _notes(self.folder / file.path))
        joined = self._write_rows("manifest", (), rows)
        self.replace({"manifest": small}, [joined], {"notes": rows[-1][0]})

    def checkpoint(self) -> None:
        """Keeps opening the table quick; loses nothing if it never happens."""
        with durable("sink.checkpoint"):
            self._refresh().create_checkpoint()

    def _refresh(self) -> Any:
        from deltalake import DeltaTable

        if self._table is None:
            if not self.exists():
                raise LedgerSinkMismatch(
                    f"The table of generation {self.generation} is not at {self.folder}.",
                    next_step="Bring it back from a backup, or start a new generation with `twinstream replay`.",
                )
            self._table = DeltaTable(str(self.folder))
        else:
            self._table.update_incremental()
        return self._table

    def _state(self, table: Any) -> SinkState:
        def version(what: str) -> int:
            return int(table.transaction_version(f"{self.generation}:{what}") or 0)

        return SinkState(version("txid"), version("epoch"), version("base"))

    def _write(self, step: str, table: Any, actions: Sequence[Any], versions: Mapping[str, int]) -> None:
        """The atomic step. It carries its transactions, so that a commit in between is a conflict, never a merge."""
        from deltalake import CommitProperties, PostCommitHookProperties, Transaction
        from deltalake.exceptions import CommitFailedError

        transactions = [Transaction(f"{self.generation}:{what}", version) for what, version in versions.items()]
        before = table.version()
        try:
            with durable(step):
                table.create_write_transaction(
                    list(actions),
                    "append",
                    table.schema(),
                    PARTITIONS,
                    commit_properties=CommitProperties(max_commit_retries=0, app_transactions=transactions),
                    post_commithook_properties=PostCommitHookProperties(
                        create_checkpoint=False, cleanup_expired_logs=False
                    ),
                )
                self._sync_log(before + 1)
        except CommitFailedError as error:
            raise CommitConflict("Another writer committed to the sink at the same moment.") from error

    def _sync_log(self, version: int) -> None:
        log = self.folder / "_delta_log"
        entry = log / f"{version:020}.json"
        if not entry.exists():
            raise mismatch(f"The sink's log has no entry {version} right after it was committed")
        sync_file(entry)
        sync_folder(log)

    def require(self, files: Sequence[StagedFile]) -> None:
        """Before a commit every staged file is seen to be there, with its size, and is made durable."""
        folders: set[Path] = set()
        for file in files:
            path = self.folder / file.path
            try:
                size = os.stat(path).st_size
            except FileNotFoundError:
                size = -1
            if size != file.size:
                raise StagedFileMissing(
                    f"The staged file {path} is gone or has another size than when it was written.",
                    untouched="Nothing of its txids was committed.",
                    next_step="The txids are processed again by the next `twinstream drain`.",
                )
            sync_file(path)
            folders.update((path.parent, path.parent.parent, path.parent.parent.parent))
        for folder in folders:
            sync_folder(folder)

    def _write_rows(self, kind: str, beside: Sequence[StagedFile], rows: Sequence[tuple[int, str]]) -> StagedFile:
        """Writes the small file that tells of a commit; unnamed until the commit itself names it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = Path(beside[0].path).parent if beside else Path("_data/notes")
        path = self.folder / folder / f"{kind}-{secrets.token_hex(8)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table(
            {"_txid": pa.array([txid for txid, _ in rows], pa.int64()), "_manifest": [text for _, text in rows]}
        )
        with durable("sink.notes"):
            pq.write_table(table, path, compression="zstd")
            sync_file(path)
            sync_folder(path.parent)
        txids = [txid for txid, _ in rows]
        return StagedFile(
            kind, path.relative_to(self.folder).as_posix(), path.stat().st_size, len(rows), min(txids), max(txids)
        )

    def _add(self, file: StagedFile, base: int | None = None) -> Any:
        from deltalake.transaction import AddAction

        stats = {
            "numRecords": file.rows,
            "minValues": {"_txid": file.first_txid},
            "maxValues": {"_txid": file.last_txid},
            "nullCount": {"_txid": 0},
        }
        return AddAction(
            path=file.path,
            size=file.size,
            partition_values=_partition(file.kind, base),
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps(stats),
        )

    def _gave_up(self) -> CommitConflict:
        return CommitConflict(
            f"Other writers kept committing to {self.folder}; gave up after {COMMIT_TRIES} tries.",
            next_step="Run the command again.",
        )


def read_manifests(folder: Path, snapshot: Snapshot, first: int, last: int) -> list[Manifest]:
    """The manifests of txids `first` to `last` in a snapshot, in order."""
    texts: dict[int, str] = {}
    for file in snapshot.files.get("manifest", ()):
        if file.last_txid is None or file.first_txid is None or (file.last_txid >= first and file.first_txid <= last):
            for row in _notes(folder / file.path):
                if first <= row["_txid"] <= last:
                    texts[row["_txid"]] = row["_manifest"]
    return [Manifest.from_json(texts[txid]) for txid in sorted(texts)]


def read_bases(folder: Path, snapshot: Snapshot) -> list[Base]:
    """The bases of a snapshot, by number."""
    found = [
        Base.from_json(row["_manifest"])
        for file in snapshot.files.get("bases", ())
        for row in _notes(folder / file.path)
    ]
    return sorted(found, key=lambda base: base.number)


def _notes(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read(columns=["_txid", "_manifest"]).to_pylist()
    except FileNotFoundError as error:
        raise mismatch(f"The file {path} is named by the sink but is not there") from error
    return rows


def _rows(table: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    found: list[dict[str, Any]] = pa.table(table).to_pylist()
    return found


def _partition(kind: str, base: int | None) -> dict[str, str | None]:
    return {"_kind": kind, "_base": None if base is None else str(base)}
