"""The order of work: groups waiting, running and done, always by txid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinstream.runtime.rate import RateController
from twinstream.transaction import Attempt, Batch, State


@dataclass(frozen=True)
class Group:
    """Consecutive batches that are processed and committed together."""

    batches: tuple[Batch, ...]
    attempt: Attempt | None = None
    """Set when the group is processed already."""

    @property
    def first(self) -> int:
        return self.batches[0].txid

    @property
    def last(self) -> int:
        return self.batches[-1].txid

    def halves(self) -> tuple[Group, Group]:
        middle = len(self.batches) // 2
        return Group(self.batches[:middle]), Group(self.batches[middle:])


class WorkList:
    """What is still to be processed, in txid order; groups are cut as late as possible, by the newest rate."""

    def __init__(self, batches: Sequence[Batch], rate: RateController) -> None:
        self._rate = rate
        self._plain = [batch for batch in batches if batch.state == State.PLANNED]
        self._groups: list[Group] = []

    def put_back(self, *groups: Group) -> None:
        """Groups whose size is decided (halves of a failed one, or one that must be done again)."""
        self._groups = sorted([*self._groups, *groups], key=lambda group: group.first)

    def next_first(self) -> int | None:
        """The txid that the next group starts with."""
        heads = [group.first for group in self._groups[:1]] + [batch.txid for batch in self._plain[:1]]
        return min(heads) if heads else None

    def take(self) -> Group:
        """The next group."""
        if self._groups and (not self._plain or self._groups[0].first < self._plain[0].txid):
            return self._groups.pop(0)
        run = self._plain[:1]
        for batch in self._plain[1:]:
            if _alone(batch) or _alone(run[-1]) or batch.txid != run[-1].txid + 1:
                break
            run.append(batch)
        chosen = self._rate.next_group(run)
        self._plain = self._plain[len(chosen) :]
        return Group(tuple(chosen))


def _alone(batch: Batch) -> bool:
    """Released and discarded txids are processed by themselves: the gate and prepare do not see them."""
    return batch.waived or batch.discard_reason is not None
