"""Commands in real processes against one home, and homes that are made once and copied for every test."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.e2e.home import Home
from tests.faults.processes import Command, Ran

SIGKILL = -9
DRAIN = ["drain", "page_views", "--batch-records", "300", "--group", "2", "--wait", "30"]
FOLD = ["fold", "page_views"]


class Stage:
    """Commands against one home."""

    def __init__(self, home: Home, url: str) -> None:
        self.home = home
        self.environment = {
            "TWINSTREAM_HOME": str(home.folder),
            "TWINSTREAM_PIPELINES": str(home.pipelines),
            "TWINSTREAM_MASTER": url,
            "TWINSTREAM_SQLITE_SYNCHRONOUS": "off",
            "TWINSTREAM_FAILPOINT": "",
        }

    def begin(self, arguments: list[str], environment: Mapping[str, str] | None = None) -> Command:
        """Starts a command and does not wait for it; `{home}` in an argument is the home's folder."""
        given = [argument.replace("{home}", str(self.home.folder)) for argument in arguments]
        return Command(self.home.folder, given, self.environment | dict(environment or {}))

    def run(self, arguments: list[str], failpoint: str = "", environment: Mapping[str, str] | None = None) -> Ran:
        return self.begin(arguments, {"TWINSTREAM_FAILPOINT": failpoint, **(environment or {})}).wait(300)

    def good(self, arguments: list[str]) -> Ran:
        ran = self.run(arguments)
        assert ran.code == 0, ran.err
        return ran

    def killed(self, arguments: list[str], failpoint: str, environment: Mapping[str, str] | None = None) -> None:
        """Runs a command that is killed at a failpoint."""
        ran = self.run(arguments, failpoint, environment)
        assert ran.code == SIGKILL, f"{failpoint} was not reached: exit code {ran.code}\n{ran.err}"

    def result(self) -> list[tuple[str, ...]]:
        rows = list(csv.reader(io.StringIO(self.good(["read", "page_views"]).out)))
        return sorted(tuple(row) for row in rows[1:])

    def assert_true(self, txids: int = 5) -> None:
        """The result is the truth, of at least so many txids."""
        expected = self.home.truth("page_views", "side")
        assert self.result() == sorted(tuple(row) for row in expected.rows)
        assert len(expected.per_txid) >= txids


class Prepared:
    """Homes as the scenes need them, each made when it is first asked for and copied for every test."""

    def __init__(self, root: Path, url: str) -> None:
        self._root = root
        self._url = url

    def stage(self, name: str, folder: Path) -> Stage:
        """A stage on a copy of the home `name`."""
        shutil.copytree(self._made(name), folder)
        return Stage(Home(folder, None, folder / "pipelines"), self._url)

    def _made(self, name: str) -> Path:
        folder = self._root / name
        if not folder.exists():
            temporary = self._root / f"{name}-making"
            getattr(self, f"_{name}")(temporary)
            temporary.rename(folder)
        return folder

    def _start(self, folder: Path) -> None:
        """Nothing was drained yet."""
        home = Home.make(folder, None)
        home.generate("page_views", 1_500, events_per_file=150, late=0.1, poison=0.01, rate=0.5)

    def _repeated(self, folder: Path) -> None:
        """Nothing was drained yet, and some records are there twice."""
        home = Home.make(folder, None)
        home.deduplicate("page_views", "1 hour")
        home.generate("page_views", 1_500, events_per_file=150, late=0.1, poison=0.01, duplicates=0.2, rate=0.5)

    def _strayed(self, folder: Path) -> None:
        """Half of it is drained, and a segment of its ids is broken."""
        self._after("repeated", folder, lambda stage: stage.good([*DRAIN, "--max-batches", "2"]))
        (next((folder / "tables" / "page_views" / "_twinstream").glob("g*-*")) / "_ids" / "broken").mkdir(parents=True)

    def _drained(self, folder: Path) -> None:
        self._after("start", folder, lambda stage: stage.good(DRAIN))

    def _folded(self, folder: Path) -> None:
        self._after("drained", folder, lambda stage: stage.good(FOLD))

    def _interrupted(self, folder: Path) -> None:
        """A drain was killed and left staged files behind."""
        self._after("start", folder, lambda stage: stage.killed(DRAIN, "ledger.processed:before"))

    def _damaged(self, folder: Path) -> None:
        """Something else has changed rows of the stream's table."""
        self._after("drained", folder, lambda stage: add_views(stage.home))

    def _repaired(self, folder: Path) -> None:
        self._after("damaged", folder, lambda stage: stage.good(["repair", "page_views"]))

    def _replayed(self, folder: Path) -> None:
        """Readers see a second generation, and the first one is still there."""
        self._after("drained", folder, lambda stage: stage.good(["replay", "page_views"]))

    def _recomputed(self, folder: Path) -> None:
        """A batch result that a newer one has taken the place of."""
        again = ["recompute", "page_views", "--frontier"]
        self._after("drained", folder, lambda stage: [stage.good([*again, txid]) for txid in ("1", "2")])

    def _mended(self, folder: Path) -> None:
        """A person has a file of mended records to bring back."""
        self._after("drained", folder, lambda stage: (folder / "mended.json").write_text(MENDED))

    def _after(self, name: str, folder: Path, then: Callable[[Stage], object]) -> None:
        then(self.stage(name, folder))


def add_views(home: Home) -> None:
    """Seven views more in every partial of the first txid."""
    from deltalake import DeltaTable

    table = DeltaTable(str(next((home.folder / "tables" / "page_views" / "_twinstream").glob("g*-*"))))
    changed = table.update(updates={"views": "views + 7"}, predicate="_kind = 'partial' and _txid = 1")
    assert changed["num_updated_rows"]


MENDED = '{"event_id": "mended", "page": "/mended", "amount": "1.00", "at": "2026-01-01T00:00:00Z"}\n'
