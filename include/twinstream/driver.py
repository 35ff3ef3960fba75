"""The Java of a driver that is all of Spark there is: its class path, its archive of classes, its garbage collector.

Spark starts sooner when Java finds its classes in an archive, which bin/setup makes once. The archive is of one Java
and one list of jars; with any other, Java leaves it aside and says nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

ARCHIVE = "classes.jsa"
_AUTO = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
_COLLECTOR = "-XX:+UseParallelGC"
"""Such a driver works through rows: what counts is how much it gets done, not how long it pauses."""
_MAY_CHOOSE = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables by which Java and spark-submit are given options."""


def driver_settings(jars: Sequence[str]) -> dict[str, str]:
    """Settings of a local driver: jars on its class path, as the archive wants them, and Java's options."""
    if any(os.pathsep in jar for jar in jars):
        return {"spark.jars": ",".join(jars), **_java(_collector())}
    archive = Path(jars[0]).with_name(ARCHIVE)
    is_there = archive.exists() and archive.stat().st_size and '"' not in str(archive)
    shared = [f'-XX:SharedArchiveFile="{archive}" {_AUTO}'] if is_there else []
    return {"spark.driver.extraClassPath": os.pathsep.join(jars), **_java([*shared, *_collector()])}


def _java(options: Sequence[str]) -> dict[str, str]:
    return {"spark.driver.extraJavaOptions": " ".join(options)} if options else {}


def _collector() -> list[str]:
    """None where the environment has chosen one: Java does not start with two."""
    chosen = any(re.search(r"-XX:\+Use\w+GC\b", os.environ.get(name, "")) for name in _MAY_CHOOSE)
    return [] if chosen else [_COLLECTOR]
