"""bin/setup in a checkout that is not as it expects."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_venv_that_is_a_link_is_refused_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    shutil.copytree(ROOT / "bin", checkout / "bin")
    for file in ("requirements.txt", "include/spark/ivy.xml"):
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, checkout / file)
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (checkout / ".venv").symlink_to(elsewhere)
    done = subprocess.run([checkout / "bin" / "setup"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{checkout / '.venv'} is a link" in done.stderr
    assert list(elsewhere.iterdir()) == [elsewhere / "kept"]
