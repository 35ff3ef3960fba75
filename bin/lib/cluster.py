"""The commands of bin/cluster: words for people go to standard error, settings to export to standard output."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from bin.lib.local.cluster import Cluster
from bin.lib.local.interrupts import listen
from twinstream.cli.output import report, say
from twinstream.errors import TwinstreamError


def main() -> NoReturn:
    """Exit code 0 for good, 1 when the cluster is not up, 2 when it cannot be."""
    parser = argparse.ArgumentParser(
        prog="bin/cluster",
        description="PostgreSQL (for Airflow and for the ledger), a Spark master and two workers on this machine, "
        "on loopback and free ports.",
        epilog='Use it by: eval "$(bin/cluster start)". Settings: TWINSTREAM_HOME, where cluster.json is kept.',
    )
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start all parts and print the settings to export")
    start.add_argument("--connect", action="store_true", help="also a Spark Connect server on the cluster")
    commands.add_parser("stop", help="stop exactly what was started; the databases' files stay")
    commands.add_parser("status", help="show which parts run, and print the settings to export")
    given = parser.parse_args()
    cluster = Cluster(Path(os.environ["TWINSTREAM_HOME"]).absolute(), Path(os.environ["TWINSTREAM_JARS"]).absolute())
    listen()
    try:
        sys.exit({"start": _start, "stop": _stop, "status": _status}[given.command](cluster, given))
    except TwinstreamError as error:
        report(error, as_json=False)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say("Interrupted: what was started is stopped again.")
        sys.exit(130)


def _start(cluster: Cluster, given: argparse.Namespace) -> int:
    if cluster.is_up() and not (given.connect and "connect" not in cluster.state.ports):
        say("The cluster is up already.")
    else:
        cluster.start(connect=given.connect, say=say)
    _print_settings(cluster)
    return 0


def _stop(cluster: Cluster, _given: argparse.Namespace) -> int:
    stopped = cluster.stop()
    say(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")
    return 0


def _status(cluster: Cluster, _given: argparse.Namespace) -> int:
    state = cluster.state
    for process in state.processes:
        condition = "runs" if process.is_running() else "is gone"
        say(f"{process.name:<9} {condition}  pid {process.pid}  {state.addresses.get(process.name, '')}".rstrip())
    if not cluster.is_up():
        say("The cluster is not up: bin/cluster start" if not state.processes else "Start it again: bin/cluster start")
        return 1
    _print_settings(cluster)
    return 0


def _print_settings(cluster: Cluster) -> None:
    for name, value in cluster.settings().items():
        print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
