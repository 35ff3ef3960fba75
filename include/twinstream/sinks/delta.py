"""The Delta sink: partials, bases, manifests, dead letters and late rows of a generation in one Delta table.

Spark writes Parquet files into a staging folder inside the table's folder; the driver names them in the Delta log by
the `deltalake` library. One table for all kinds of rows means one atomic commit: what belongs to a txid becomes
visible together, and there is no side table that could run ahead. docs/protocol.md has the argument.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinstream.durations import parse_duration
from twinstream.errors import CommitConflict, DefinitionError, LedgerSinkMismatch, SettingsError
from twinstream.failpoints import durable
from twinstream.sinks.base import (
    Base,
    GroupCommit,
    SinkState,
    check_base,
    check_commit,
    check_fence,
    check_owner,
    mismatch,
)
from twinstream.sinks.snapshot import LiveFile, Snapshot, live_files, read_bases, read_manifests, read_notes
from twinstream.sinks.staged import add_action, partition, require_staged, write_notes
from twinstream.sinks.sync import sync_file, sync_folder, sync_tree
from twinstream.transaction import Manifest, StagedFile

if TYPE_CHECKING:
    from twinstream.pipeline import Pipeline

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
FOLLOWED = 100
"""A handle that has followed the log for so many versions is opened anew: it keeps all that it has read, while one that
is opened starts from the last checkpoint."""
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

    @property
    def place(self) -> str:
        return self.path

    @property
    def connections(self) -> tuple[str, ...]:
        return ()

    def check(self, pipeline: Pipeline, columns: Mapping[str, str | None] | None) -> None:
        """Takes whatever an operator gives."""


class DeltaStore:
    """One generation's table."""

    def __init__(self, folder: Path, generation: str, columns: Mapping[str, str]) -> None:
        self.folder = folder
        self.generation = generation
        self._columns = OUR_COLUMNS | {n: t for n, t in columns.items() if n not in OUR_COLUMNS}
        self._table: Any = None
        self._opened_at = 0
        self._told: dict[tuple[int, str], int] = {}
        """Transactions of a version of the table: the library reads its log once more each time it is asked."""

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
            rows = [(manifest.txid, manifest.to_json()) for manifest in group.manifests]
            notes = write_notes(self.folder, "manifest", group.files, rows)
            actions = [add_action(file) for file in (*group.files, notes)]
            try:
                self._write("sink.commit", table, actions, {"txid": group.last, "epoch": group.epoch})
            except CommitConflict:
                continue
            return True
        raise self._gave_up()

    def produced(self) -> int:
        """Up to which txid the rows were produced to a topic."""
        return self._version(self._refresh(), "produced")

    def note_produced(self, txid: int, epoch: int) -> None:
        """Remembers, under the runner's epoch, that the rows up to a txid were produced."""
        for _ in range(COMMIT_TRIES):
            table = self._refresh()
            state = self._state(table)
            check_owner(state, epoch)
            if not self._version(table, "produced") < txid <= state.txid:
                raise mismatch(f"Txid {txid} was produced, but the sink is at txid {state.txid} or beyond that already")
            try:
                self._write("sink.produced", table, [], {"produced": txid, "epoch": epoch})
            except CommitConflict:
                continue
            return
        raise self._gave_up()

    def add_base(self, base: Base, files: Sequence[StagedFile]) -> bool:
        for _ in range(COMMIT_TRIES):
            table = self._refresh()
            if not check_base(self._state(table), base):
                return False
            self.require(files)
            note = write_notes(self.folder, "bases", files, [(base.frontier, base.to_json())])
            actions = [add_action(file, base.number) for file in files] + [add_action(note)]
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
                             partition_values=partition(kind, file.base))
                for kind, files in removed.items() for file in files if file.path in there
            ]  # fmt: skip
            actions += [add_action(file) for file in added]
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
        kept_from = self._version(table, "kept")
        return Snapshot(table.version(), self._state(table), kept_from, live_files(table))

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
        rows = sorted((row["_txid"], row["_manifest"]) for file in small for row in read_notes(self.folder / file.path))
        joined = write_notes(self.folder, "manifest", (), rows)
        self.replace({"manifest": small}, [joined], {"notes": rows[-1][0]})

    def checkpoint(self) -> None:
        """Keeps opening the table quick; loses nothing if it never happens."""
        with durable("sink.checkpoint"):
            self._refresh().create_checkpoint()

    def _refresh(self) -> Any:
        from deltalake import DeltaTable

        if self._table is not None and self._table.version() - self._opened_at < FOLLOWED:
            self._table.update_incremental()
            return self._table
        if not self.exists():
            raise LedgerSinkMismatch(
                f"The table of generation {self.generation} is not at {self.folder}.",
                next_step="Bring it back from a backup, or start a new generation with `twinstream replay`.",
            )
        self._table = DeltaTable(str(self.folder))
        self._opened_at = self._table.version()
        return self._table

    def _state(self, table: Any) -> SinkState:
        return SinkState(*(self._version(table, what) for what in ("txid", "epoch", "base")))

    def _version(self, table: Any, what: str) -> int:
        version = table.version()
        found = self._told.get((version, what))
        if found is None:
            found = int(table.transaction_version(f"{self.generation}:{what}") or 0)
            self._told = {known: one for known, one in self._told.items() if known[0] == version}
            self._told[version, what] = found
        return found

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
        require_staged(self.folder, files)

    def _gave_up(self) -> CommitConflict:
        return CommitConflict(
            f"Other writers kept committing to {self.folder}; gave up after {COMMIT_TRIES} tries.",
            next_step="Run the command again.",
        )
