"""The commands of bin/demo that need Airflow."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

from bin.lib.demo.parts import Parts
from bin.lib.demo.pictures import take_pictures
from bin.lib.demo.story import Story
from bin.lib.demo.telling import heading, say, seconds
from bin.lib.local.interrupts import listen
from bin.lib.local.rest import Rest
from twinstream.cli.output import report
from twinstream.errors import TwinstreamError

ROOT = Path(__file__).resolve().parents[3]


def main() -> NoReturn:
    """Exit code 0 when every verdict was as it must be, 1 when one was not, 130 when it was interrupted."""
    parser = argparse.ArgumentParser(prog="bin/demo")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--home", type=Path, default=ROOT / ".demo")
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    listen()
    parts = Parts(ROOT, given.home)
    story: Story | None = None
    good = False
    try:
        with parts.up() as rest:
            say(f"Airflow is up on {parts.airflow.address}")
            look = partial(take_pictures, given.pictures, parts.airflow.address, parts.airflow.password)
            story = Story(rest, ROOT, parts.settings(), look if given.pictures else lambda: None)
            good = story.tell()
            _conclude(story, good)
            if not given.once:
                _stay(parts, rest)
    except TwinstreamError as error:
        report(error, as_json=False)
        say(f"The logs of what was started are in {parts.home}/airflow and {parts.home}/spark.")
        good = False
    except KeyboardInterrupt:
        if story is None or not story.ended:
            say("The demo was stopped; nothing of it is running any more.")
            sys.exit(130)
    say("Nothing of the demo is running any more.")
    sys.exit(0 if good else 1)


def _conclude(story: Story, good: bool) -> None:
    story.ended = True
    heading(f"{'Done' if good else 'Something is not as it should be'}, in {seconds():.0f} s")
    for verdict in story.verdicts:
        print(f"  {verdict}")


def _stay(parts: Parts, rest: Rest) -> NoReturn:
    print(
        f"\n  Open {parts.airflow.address}\n"
        f"  login admin, password {parts.airflow.password}\n\n"
        f"  reports     {parts.home}/reports/page_views (open the .html files in a browser)\n"
        f"  commands    export TWINSTREAM_HOME={parts.home}; bin/twinstream status page_views\n"
        "  Ctrl-C ends all of it.",
        flush=True,
    )
    while True:
        rest.watch()
        time.sleep(2)


if __name__ == "__main__":
    main()
