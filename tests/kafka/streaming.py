"""A continuous run in a thread of its own, and what it says of itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.kafka.home import KafkaHome
from twinstream.errors import Refused
from twinstream.ledger.runs import CONTINUOUS
from twinstream.runtime.continuous import ContinuousRequest
from twinstream.runtime.progress import Progress

NOW = ContinuousRequest(every=None, wait_seconds=0)
SOON = ContinuousRequest(every="200 milliseconds", wait_seconds=0)


def stream(
    home: KafkaHome,
    request: ContinuousRequest = NOW,
    stop: threading.Event | None = None,
    progress: Progress | None = None,
) -> Any:
    return home.engine().continuous("page_views", request, progress or Progress(), stop)


class Streaming:
    """Until the block ends."""

    def __init__(self, home: KafkaHome, request: ContinuousRequest = SOON, progress: Progress | None = None) -> None:
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(home, request, progress))
        self._thread.start()

    def _run(self, home: KafkaHome, request: ContinuousRequest, progress: Progress | None) -> None:
        try:
            stream(home, request, self.stop, progress)
        except BaseException as error:
            self.error = error

    def wait(self) -> None:
        self._thread.join(120)
        assert not self._thread.is_alive()

    def __enter__(self) -> Streaming:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.wait()


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def planned(home: KafkaHome) -> list[Any]:
    engine = home.engine()
    generation = engine.generation(engine.definition("page_views"))
    return [batch.range for batch in engine.ledger.batches.get(generation.id, 1, generation.last_txid)]


def counted(home: KafkaHome, what: str = "read") -> int:
    """Committed records of a class."""
    try:
        return sum(one[what] for one in home.accounting("page_views").values())
    except Refused:
        return 0


def facts(home: KafkaHome) -> dict[str, Any]:
    """What the newest run says of itself."""
    engine = home.engine()
    generation = engine.generation(engine.definition("page_views"))
    found = [run for run in engine.ledger.runs.newest(generation.id) if run.kind == CONTINUOUS]
    return dict(found[0].result or {})
