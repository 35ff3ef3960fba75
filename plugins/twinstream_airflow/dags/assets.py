"""The assets of a pipeline: what wakes it up, and what it gives."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from twinstream_airflow.triggers.new_data import NewDataTrigger

GROUP = "twinstream"


def source_asset(pipeline: str, *, watched: bool = False) -> Asset:
    """The source; watched, it has an event whenever there is something in it that no txid has."""
    watcher = AssetWatcher(name=f"{pipeline} new data", trigger=NewDataTrigger(pipeline=pipeline))
    return Asset(
        name=f"{pipeline} source",
        uri=f"twinstream://{pipeline}/source",
        group=GROUP,
        watchers=[watcher] if watched else [],
    )


def stream_asset(pipeline: str) -> Asset:
    """The streamed result; its events carry the frontier."""
    return _asset(pipeline, "stream")


def batch_asset(pipeline: str) -> Asset:
    """The recomputed result; its events carry the frontier that it was computed at."""
    return _asset(pipeline, "batch")


def verdict_asset(pipeline: str) -> Asset:
    """The verdict of a reconciliation; its events carry frontier and verdict."""
    return _asset(pipeline, "verdict")


def _asset(pipeline: str, what: str) -> Asset:
    return Asset(name=f"{pipeline} {what}", uri=f"twinstream://{pipeline}/{what}", group=GROUP)
