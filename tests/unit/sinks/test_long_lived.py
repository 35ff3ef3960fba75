"""A handle that a runner keeps for days: it does not keep all of the log that it has ever followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sinks.test_conformance import Bench, committed, group
from twinstream.sinks import delta


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_handle_is_opened_anew_after_some_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoints: bool
) -> None:
    monkeypatch.setattr(delta, "FOLLOWED", 4)
    bench = Bench("delta", tmp_path)
    store, other = bench.handle(), bench.handle()
    store.fence(1)
    handles = set()
    for txid in range(1, 13):
        assert store.commit(group(bench, store, txid))
        handles.add(store._opened_at)
        if checkpoints and txid % 5 == 0:
            store.checkpoint()
        assert other.state().txid == txid
    assert len(handles) >= 3, handles
    assert committed(store) == committed(other) == list(range(1, 13))
