"""What a sink must do for the transaction rules: one atomic commit of data, txid and epoch, checked on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from twinstream.errors import Fenced, LedgerSinkMismatch
from twinstream.transaction import Manifest, StagedFile, canonical_json

SEE_PROTOCOL = "See 'When ledger and sink disagree' in docs/protocol.md for how to go on."


@dataclass(frozen=True)
class SinkState:
    """What one snapshot of the sink says: the last txid, the epoch that may write, the newest base."""

    txid: int
    epoch: int
    base: int


@dataclass(frozen=True)
class GroupCommit:
    """Consecutive txids to be committed in one step under an epoch."""

    epoch: int
    manifests: tuple[Manifest, ...]
    files: tuple[StagedFile, ...]

    @property
    def first(self) -> int:
        return self.manifests[0].txid

    @property
    def last(self) -> int:
        return self.manifests[-1].txid


@dataclass(frozen=True)
class Base:
    """The folded result as of one frontier: all rows in `parts`, which are numbers of bases that wrote files."""

    number: int
    frontier: int
    parts: tuple[int, ...]
    watermark: int | None
    origin: str
    files: tuple[str, ...]
    """The files that this base added."""

    def to_json(self) -> str:
        return canonical_json(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Base:
        value = json.loads(text)
        return cls(**value | {"parts": tuple(value["parts"]), "files": tuple(value["files"])})


class Store(Protocol):
    """One generation's place in a sink."""

    def state(self) -> SinkState:
        """The newest state."""

    def fence(self, epoch: int) -> SinkState:
        """Commits `epoch`: from now on nothing with a lower epoch can be committed. Returns the state after."""

    def commit(self, group: GroupCommit) -> bool:
        """Commits the group in one atomic step; False if the sink has it already, with the same ranges."""

    def require(self, files: Sequence[StagedFile]) -> None:
        """Raises StagedFileMissing unless every staged file is there, with its size."""

    def manifests(self, first: int, last: int) -> list[Manifest]:
        """The manifests of txids `first` to `last` that are committed, in order."""

    def bases(self) -> list[Base]:
        """The bases, by number."""

    def add_base(self, base: Base, files: Sequence[StagedFile]) -> bool:
        """Adds a base whose number is the newest + 1; False if that number is there already."""

    def new_staging(self) -> str:
        """The name of a fresh staging folder, not yet made."""

    def remove_staging(self, staging: str) -> None:
        """Deletes a staging folder that no commit names."""


def check_fence(state: SinkState, epoch: int) -> None:
    """An epoch is taken once: a sink that has it, or a higher one, belongs to someone else."""
    if state.epoch >= epoch:
        raise Fenced(
            f"The sink belongs to epoch {state.epoch}; epoch {epoch} may not take it over.",
            untouched="Nothing was written to the sink.",
            next_step=SEE_PROTOCOL,
        )


def check_owner(state: SinkState, epoch: int) -> None:
    """What a runner commits, it commits under the epoch that it took the sink over with."""
    if state.epoch > epoch:
        raise Fenced(
            f"The sink belongs to epoch {state.epoch}; a runner of epoch {epoch} may not commit any more.",
            untouched="Nothing of this attempt was committed.",
            next_step="Nothing to do: the newer runner goes on from the frontier.",
        )
    if state.epoch < epoch:
        raise mismatch(f"The sink has epoch {state.epoch} although epoch {epoch} was committed to it before")


def check_commit(state: SinkState, group: GroupCommit, committed: Callable[[int, int], list[Manifest]]) -> bool:
    """Decides on one snapshot whether a group may be applied: True apply, False it is there already.

    There is no third way: anything else than 'the very next' or 'the very same' stops with the sink untouched.
    """
    check_owner(state, group.epoch)
    txids = [manifest.txid for manifest in group.manifests]
    if txids != list(range(group.first, group.first + len(txids))):
        raise mismatch(f"The group's txids {txids} are not consecutive")
    if group.first == state.txid + 1:
        return True
    if group.last <= state.txid:
        there = {manifest.txid: manifest.range_digest for manifest in committed(group.first, group.last)}
        if there == {manifest.txid: manifest.range_digest for manifest in group.manifests}:
            return False
        raise mismatch(f"The sink has txids {group.first} to {group.last} with other ranges than the ledger")
    raise mismatch(f"The sink is at txid {state.txid}; txids {group.first} to {group.last} do not follow it")


def check_base(state: SinkState, base: Base) -> bool:
    """A base is added once, right after the one before it, and never beyond what is committed."""
    if base.number <= state.base:
        return False
    if base.number != state.base + 1 or base.frontier > state.txid:
        raise mismatch(
            f"Base {base.number} at txid {base.frontier} does not follow base {state.base}, txid {state.txid}"
        )
    return True


def mismatch(what: str) -> LedgerSinkMismatch:
    """The error for a disagreement that no crash explains."""
    return LedgerSinkMismatch(f"{what}.", untouched="Ledger and sink were left as they are.", next_step=SEE_PROTOCOL)
