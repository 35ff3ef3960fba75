"""A runner in a process of its own, to be killed: python -m twinstream.modes.runner, what it is to do as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from twinstream.modes.modes import Watch, modes
from twinstream.modes.world import World
from twinstream.settings import Settings


def main(text: str) -> None:
    """Catches up until it is done or killed, txid by txid."""
    told = json.loads(text)
    world = World(
        told["name"], Path(told["home"]), Path(told["ledger"]), told["topics"], told["batch_records"]
    )  # fmt: skip
    engine = world.engine(Settings.from_env())
    mode = next(one for one in modes(told["every"], told["max_batches"], group=1) if one.name == told["mode"])
    mode.catch_up(engine, world.name, Watch())


if __name__ == "__main__":
    main(sys.argv[1])
