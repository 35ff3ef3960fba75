"""Where benchmarks keep what they found: a table for people, and a plot."""

from __future__ import annotations

from benchmarks.lib.home import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PEER, OURS = "#9aa5b1", "#0b7285"


def keep(name: str, text: str) -> None:
    """Keeps a table."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text + "\n")


def pyplot():
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def keep_plot(name: str, figure) -> None:
    """Keeps a plot, without the frame that nobody reads."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=150)
