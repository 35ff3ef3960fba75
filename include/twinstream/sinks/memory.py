"""A sink in memory with the same rules as Delta: what the protocol's model test runs on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinstream.errors import CommitConflict, StagedFileMissing
from twinstream.failpoints import durable
from twinstream.sinks.base import Base, GroupCommit, SinkState, check_base, check_commit, check_fence, mismatch
from twinstream.transaction import Manifest, StagedFile

_names = itertools.count(1)


@dataclass
class MemoryDisk:
    """What survives a crash: files by path, and the table's versions."""

    files: dict[str, int] = field(default_factory=dict)
    version: int = 0
    state: SinkState = field(default_factory=lambda: SinkState(0, 0, 0))
    manifests: dict[int, Manifest] = field(default_factory=dict)
    bases: list[Base] = field(default_factory=list)
    live: set[str] = field(default_factory=set)


class MemoryStore:
    """A handle on a MemoryDisk; many handles may share one disk, as many processes share one table."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk

    def state(self) -> SinkState:
        return self.disk.state

    def fence(self, epoch: int) -> SinkState:
        while True:
            version, state = self.disk.version, self.disk.state
            check_fence(state, epoch)
            after = SinkState(state.txid, epoch, state.base)
            if self._swap("sink.fence", version, after):
                return after

    def commit(self, group: GroupCommit) -> bool:
        while True:
            version, state = self.disk.version, self.disk.state
            if not check_commit(state, group, self.manifests):
                return False
            self.require(group.files)
            after = SinkState(group.last, state.epoch, state.base)
            if self._swap("sink.commit", version, after, group.manifests, files=group.files):
                return True

    def manifests(self, first: int, last: int) -> list[Manifest]:
        return [self.disk.manifests[txid] for txid in range(first, last + 1) if txid in self.disk.manifests]

    def bases(self) -> list[Base]:
        return list(self.disk.bases)

    def add_base(self, base: Base, files: Sequence[StagedFile]) -> bool:
        while True:
            version, state = self.disk.version, self.disk.state
            if not check_base(state, base):
                return False
            self.require(files)
            after = SinkState(state.txid, state.epoch, base.number)
            if self._swap("sink.base", version, after, bases=[base], files=files):
                return True

    def new_staging(self) -> str:
        return f"staging-{next(_names)}"

    def remove_staging(self, staging: str) -> None:
        inside = [path for path in self.disk.files if path.startswith(f"{staging}/")]
        if self.disk.live.intersection(inside):
            raise mismatch(f"The ledger calls {staging} left over, but the sink names files in it")
        with durable("sink.remove-staging"):
            for path in inside:
                assert path not in self.disk.live, f"{path} is named by a commit and must not be removed"
                self.disk.files.pop(path, None)

    def require(self, files: Sequence[StagedFile]) -> None:
        for file in files:
            if self.disk.files.get(file.path) != file.size:
                raise StagedFileMissing(f"The staged file {file.path} is gone or has another size.")

    def _swap(
        self,
        step: str,
        version: int,
        after: SinkState,
        manifests: Sequence[Manifest] = (),
        bases: Sequence[Base] = (),
        files: Sequence[StagedFile] = (),
    ) -> bool:
        """The atomic step: all or nothing, and only if nobody committed since `version` was read."""
        try:
            with durable(step):
                if self.disk.version != version:
                    raise CommitConflict("Another writer was faster.")
                self.disk.version += 1
                self.disk.state = after
                self.disk.manifests.update({manifest.txid: manifest for manifest in manifests})
                self.disk.bases.extend(bases)
                self.disk.live.update(file.path for file in files)
        except CommitConflict:
            return False
        return True
