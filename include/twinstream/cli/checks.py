"""What `twinstream doctor` looks at without Spark; each check says what it found and how to mend it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from twinstream.cli.standing import existing_ledger, shown_url, sqlite_path
from twinstream.errors import LedgerError, TwinstreamError
from twinstream.pipeline import SPARK_MINOR
from twinstream.settings import Settings
from twinstream.spark import find_jars, java_home

OLDEST_JAVA = 17
PYTHONS = ((3, 11), (3, 13))
LITTLE_ROOM = 5 * 1024**3
NO_ROOM = 512 * 1024**2
CONNECT_PORT = 15002
CONNECT_SECONDS = 10.0
SETUP = "Run bin/setup."
_FOREIGN = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


@dataclass(frozen=True)
class Check:
    """What one check found: `ok`, `warning`, `failed` or `skipped`."""

    name: str
    state: str
    found: str
    mend: str = ""


def ok(name: str, found: str) -> Check:
    """All is well."""
    return Check(name, "ok", found)


def warning(name: str, found: str, mend: str) -> Check:
    """It works, but may not do what is meant."""
    return Check(name, "warning", found, mend)


def failed(name: str, found: str, mend: str) -> Check:
    """It cannot work before it is mended."""
    return Check(name, "failed", found, mend)


def skipped(name: str, found: str) -> Check:
    """Not looked at, and why."""
    return Check(name, "skipped", found)


def uses_connect(settings: Settings) -> bool:
    """Whether Spark is a server elsewhere, with Java and jars of its own."""
    return settings.master.startswith("sc://")


def shown_master(settings: Settings) -> str:
    """The master without what may follow in a Connect address: a token."""
    return settings.master.split(";")[0].rstrip("/")


def python() -> Check:
    """A Python that the packages are made for."""
    version = ".".join(map(str, sys.version_info[:3]))
    if PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        return ok("python", f"{version} ({sys.executable})")
    return failed("python", f"{version} is not supported", "Use Python 3.11, 3.12 or 3.13.")


def packages() -> Check:
    """The versions of what must fit together; nothing is imported for that."""
    found = {name: _version(name) for name in ("pyspark", "pyspark-client", "deltalake")}
    spark = found["pyspark"] or found["pyspark-client"]
    if spark is None or found["deltalake"] is None:
        missing = " and ".join(name for name in ("pyspark", "deltalake") if found[name] is None)
        return failed("packages", f"{missing} not installed", SETUP)
    if not spark.startswith(f"{SPARK_MINOR}."):
        return failed("packages", f"pyspark is {spark}; this Twinstream needs {SPARK_MINOR}", SETUP)
    if found["pyspark"] and found["pyspark-client"] not in (None, spark):
        return failed(
            "packages",
            f"pyspark is {spark} and pyspark-client {found['pyspark-client']}, which overwrite each other's files",
            "Install both in one version. " + SETUP,
        )
    return ok("packages", f"pyspark {spark}, deltalake {found['deltalake']}")


def java(settings: Settings) -> Check:
    """A Java that Spark can use, found the way Spark finds it: JAVA_HOME comes first, right or wrong."""
    if uses_connect(settings):
        return skipped("java", "not needed here: Spark Connect has its own")
    mend = f"Install Java {OLDEST_JAVA} (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME."
    given = os.environ.get("JAVA_HOME")
    if given and not (Path(given) / "bin" / "java").exists():
        return failed("java", f"JAVA_HOME is {given}, where there is no bin/java", "Correct JAVA_HOME, or unset it.")
    home = java_home()
    if home is None:
        return failed("java", "not found", mend)
    version = _java_version(Path(home) / "bin" / "java")
    if version is None:
        return failed("java", f"{home} does not say its version", mend)
    if int(version.removeprefix("1.").split(".")[0]) < OLDEST_JAVA:
        return failed("java", f"{version} ({home}) is too old", mend)
    return ok("java", f"{version} ({home})")


def answers(settings: Settings) -> Check | None:
    """For Spark Connect: what is wrong if nobody listens there. Its own client goes on trying for many minutes."""
    found = urlsplit(settings.master)
    mend = "Start the Connect server, or set TWINSTREAM_MASTER to local[*]."
    try:
        with socket.create_connection((found.hostname or "", found.port or CONNECT_PORT), timeout=CONNECT_SECONDS):
            return None
    except (OSError, ValueError) as error:
        return failed("spark", f"nobody answers at {shown_master(settings)}: {error}", mend)


def environment() -> Check:
    """Another Spark on the machine lends its jars and settings to ours through these variables."""
    spec = importlib.util.find_spec("pyspark")
    own = Path(spec.origin).parent if spec and spec.origin else None
    given = os.environ.get("SPARK_HOME")
    names = [name for name in _FOREIGN if os.environ.get(name)]
    if given and (own is None or Path(given).resolve() != own.resolve()):
        names.insert(0, "SPARK_HOME")
    if not names:
        return ok("environment", "no other Spark interferes")
    return warning(
        "environment",
        f"{', '.join(names)} set by someone else: another Spark's jars or settings would be used",
        f"unset {' '.join(names)}",
    )


def jars(settings: Settings) -> Check:
    """Delta for this Spark among the jars that bin/setup fetched."""
    if uses_connect(settings):
        return skipped("jars", "not needed here: the Connect server has its own")
    found = [Path(path).name for path in find_jars(settings)]
    place = settings.jars or "TWINSTREAM_JARS, which is not set"
    delta = next((name for name in found if name.startswith(f"delta-spark_{SPARK_MINOR}_")), None)
    if delta is None:
        return warning("jars", f"no delta-spark for Spark {SPARK_MINOR} in {place}: Spark starts without Delta", SETUP)
    return ok("jars", f"{len(found)} in {place}, {delta.removesuffix('.jar')} among them")


def home(settings: Settings) -> Check:
    """TWINSTREAM_HOME takes files, and has room for more."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.home) as file:
            file.write(b"twinstream")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return failed(
            "home", f"{settings.home} cannot be written: {error.strerror}", "Set TWINSTREAM_HOME to a folder of yours."
        )
    free = shutil.disk_usage(settings.home).free
    text = f"{settings.home}, {free / 1024**3:.1f} GiB free"
    mend = "Make room, or set TWINSTREAM_HOME to a larger disk."
    if free < NO_ROOM:
        return failed("home", text, mend)
    return warning("home", text, mend) if free < LITTLE_ROOM else ok("home", text)


def ledger(settings: Settings) -> Check:
    """The ledger opens; where there is none yet, none is made."""
    from twinstream.ledger.database import open_unchecked, revision

    place = shown_url(settings.ledger_url)
    try:
        with existing_ledger(settings.ledger_url) as found:
            if found is not None:
                return ok("ledger", f"{place}, version {revision(found.database)}")
        open_unchecked(settings.ledger_url).close()
    except LedgerError as error:
        return failed("ledger", f"{place}: {error.what}", error.next_step)
    path = sqlite_path(settings.ledger_url)
    if path is not None and not os.access(path.resolve().parent, os.W_OK):
        return failed(
            "ledger", f"{path.resolve().parent} cannot be written", "Set TWINSTREAM_HOME to a folder of yours."
        )
    return ok("ledger", f"{place}, not made yet: the first drain makes it")


def pipelines(settings: Settings) -> Check:
    """Every definition loads."""
    from twinstream.catalog import load_catalog

    try:
        catalog = load_catalog(settings.pipelines)
    except TwinstreamError as error:
        return failed("pipelines", error.what, error.next_step)
    if catalog.broken:
        names = ", ".join(broken.file.name for broken in catalog.broken)
        return failed("pipelines", f"broken in {catalog.folder}: {names}", "`twinstream lint` says what is wrong.")
    if not catalog.definitions:
        return warning("pipelines", f"none in {catalog.folder}", "`twinstream new NAME` starts one.")
    return ok("pipelines", f"{', '.join(catalog.definitions)} in {catalog.folder}")


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java_version(program: Path) -> str | None:
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d[\d._]*)', said.stderr + said.stdout)
    return found.group(1) if found else None
