"""Pictures of the pages, taken by Chromium while the demo runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bin.lib.demo.telling import say
from bin.lib.local.browser import Frame, browser


def take_pictures(folder: Path, address: str, password: str) -> None:
    """The overview and the newest finding, as somebody sees them who opens Airflow now."""
    scratch = tempfile.TemporaryDirectory(prefix="twinstream-pictures-", ignore_cleanup_errors=True)
    with scratch as place, browser(Path(place)) as tab:
        tab.look(1280, 860)
        tab.sign_in(address, password)
        tab.open(f"{address}/plugin/twinstream")
        page = Frame(tab)
        page.says("differ as of txid", seconds=60)
        tab.screenshot(folder / "overview.png", whole=False)
        page.click(".findings a", "differ as of txid")
        page.says("Differing rows")
        tab.screenshot(folder / "reconciliation.png", whole=False)
    say(f"Pictures of the pages: {folder}/overview.png and reconciliation.png")
