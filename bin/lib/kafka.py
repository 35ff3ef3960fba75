"""The commands of bin/kafka: words for people go to standard error, settings to export to standard output."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from bin.lib.local.interrupts import held, listen
from bin.lib.local.kafka import Kafka
from bin.lib.local.processes import free_port, stop
from bin.lib.local.state import State
from twinstream.cli.output import report, say
from twinstream.errors import TwinstreamError

ROOT = Path(__file__).resolve().parents[2]


def main() -> NoReturn:
    """Exit code 0 for good, 1 when the broker is not up, 2 when it cannot be."""
    parser = argparse.ArgumentParser(
        prog="bin/kafka",
        description="A Kafka broker on this machine, on loopback and a free port.",
        epilog='Use it by: eval "$(bin/kafka start)". Settings: TWINSTREAM_HOME, where its records are kept.',
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start", help="start it and print the settings to export")
    commands.add_parser("stop", help="stop exactly what was started; the records stay")
    commands.add_parser("status", help="tell whether it runs, and print the settings to export")
    given = parser.parse_args()
    state = State.load(Path(os.environ["TWINSTREAM_HOME"]).absolute() / "kafka.json")
    listen()
    try:
        sys.exit({"start": _start, "stop": _stop, "status": _status}[given.command](state))
    except TwinstreamError as error:
        report(error, as_json=False)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _end(state)
        say("Interrupted: the broker is stopped again.")
        sys.exit(130)


def _start(state: State) -> int:
    if state.running():
        say("The broker is up already.")
    else:
        state.processes.clear()
        for port in ("broker", "controller"):
            state.ports[port] = free_port(state.ports.get(port))
        kafka = _kafka(state)
        try:
            kafka.wait(state.start("kafka", kafka.start))
        except BaseException:
            _end(state)
            raise
        say(f"The broker is up on {kafka.address}; its records are in {kafka.folder}.")
    _print_settings(state)
    return 0


def _stop(state: State) -> int:
    running = bool(state.running())
    _end(state)
    say("Stopped." if running else "Nothing was running.")
    return 0


def _status(state: State) -> int:
    if not state.running():
        say("The broker is not up. Start it with: bin/kafka start")
        return 1
    say(f"The broker is up on {_kafka(state).address}.")
    _print_settings(state)
    return 0


def _kafka(state: State) -> Kafka:
    folder = state.file.parent / "kafka"
    folder.mkdir(parents=True, exist_ok=True)
    return Kafka(folder, ROOT / ".kafka", state.ports["broker"], state.ports["controller"])


def _end(state: State) -> None:
    with held():
        stop(*state.processes)
        state.processes.clear()
        state.save()


def _print_settings(state: State) -> None:
    print(f"export TWINSTREAM_KAFKA_DEFAULT={shlex.quote(_kafka(state).address)}")


if __name__ == "__main__":
    main()
