"""Definitions for tests: changed copies of the examples."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def change(folder: Path, name: str, *changes: tuple[str, str]) -> None:
    """Changes a definition that is there."""
    file = folder / f"{name}.py"
    text = file.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text)


def copies(folder: Path, count: int) -> None:
    """That many pipelines more, each like page_views."""
    text = (ROOT / "include" / "pipelines" / "page_views.py").read_text()
    for number in range(count):
        (folder / f"views_{number}.py").write_text(text.replace("page_views", f"views_{number}"))
