"""Running the command line in real processes that can be killed, quickly: forked from a server that has it imported."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.faults.preload"])


@dataclass(frozen=True)
class Ran:
    """How a command ended; a negative code is the signal that killed it."""

    code: int
    out: str
    err: str

    def json(self) -> dict:
        return json.loads(self.out)


class Command:
    """One command in a process of its own."""

    def __init__(self, home: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._out = home / f"out-{os.urandom(4).hex()}"
        self._err = self._out.with_name(self._out.name + ".err")
        self.process: BaseProcess = _context.Process(
            target=_run, args=(list(arguments), dict(environment), str(self._out), str(self._err))
        )
        self.process.start()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def wait(self, timeout: float = 120) -> Ran:
        self.process.join(timeout)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
            raise TimeoutError(f"still running after {timeout} s:\n{self._text(self._err)}")
        assert self.process.exitcode is not None
        return Ran(self.process.exitcode, self._text(self._out), self._text(self._err))

    @staticmethod
    def _text(path: Path) -> str:
        return path.read_text(errors="replace") if path.exists() else ""


def _run(arguments: list[str], environment: dict[str, str], out: str, err: str) -> None:
    for target, number in ((out, 1), (err, 2)):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, number)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    os.environ.update(environment)
    from twinstream.cli import output
    from twinstream.cli.main import main

    output.out.file = sys.stdout
    output.err.file = sys.stderr
    main(arguments)
