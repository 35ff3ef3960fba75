"""Spark starts sooner when Java finds its classes in an archive, which bin/setup makes once.

The archive is of one Java and one list of jars. With any other, Java leaves it aside and says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

ARCHIVE = "classes.jsa"
_AUTO = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def driver_settings(jars: Sequence[str]) -> dict[str, str]:
    """Settings of a driver that is all of Spark there is: jars on its class path, as the archive wants them."""
    if any(os.pathsep in jar for jar in jars):
        return {"spark.jars": ",".join(jars)}
    found = {"spark.driver.extraClassPath": os.pathsep.join(jars)}
    archive = Path(jars[0]).with_name(ARCHIVE)
    if archive.exists() and archive.stat().st_size and '"' not in str(archive):
        found["spark.driver.extraJavaOptions"] = f'-XX:SharedArchiveFile="{archive}" {_AUTO}'
    return found
