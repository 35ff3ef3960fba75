"""The Java of a local driver: an archive where it fits, no trouble where it does not, and one garbage collector."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import JARS
from twinstream.driver import ARCHIVE, driver_settings
from twinstream.spark import require_java

OPTIONS = "spark.driver.extraJavaOptions"


def java(*options: str) -> subprocess.CompletedProcess[str]:
    command = [f"{require_java()}/bin/java", *options, "-version"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_spark_was_started_with_an_archive_that_fits_its_class_path(spark) -> None:
    system = spark.sparkContext._jvm.java.lang.System
    path = system.getProperty("java.class.path")
    started = java(f"-XX:SharedArchiveFile={JARS / ARCHIVE}", "-Xshare:on", "-cp", path)
    assert started.returncode == 0, started.stderr
    assert str(JARS / ARCHIVE) in spark.sparkContext.getConf().get(OPTIONS)


def test_another_file_or_class_path_is_left_aside_without_a_word(tmp_path: Path) -> None:
    jar = tmp_path / "one.jar"
    shutil.copy(next(JARS.glob("*.jar")), jar)
    usual = java("-cp", str(jar))
    (tmp_path / "no archive").write_text("but a text")
    for file in (tmp_path / "no archive", JARS / ARCHIVE):
        (tmp_path / ARCHIVE).unlink(missing_ok=True)
        (tmp_path / ARCHIVE).symlink_to(file)
        started = java(*shlex.split(driver_settings([str(jar)])[OPTIONS]), "-cp", str(jar))
        said = started.stderr.replace(", sharing", "")
        assert (started.returncode, started.stdout, said) == (0, "", usual.stderr.replace(", sharing", ""))


@pytest.mark.parametrize("folder", ["plain", "with space", "with:colon", 'with"quote'])
def test_settings_name_the_jars_and_the_archive_if_it_is_there(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    place.mkdir()
    jars = [str(place / "a.jar"), str(place / "b.jar")]
    found = driver_settings(jars)
    assert OPTIONS not in found, "the tests choose the collector"
    if ":" in folder:
        assert found == {"spark.jars": ",".join(jars)}
        return
    assert found == {"spark.driver.extraClassPath": ":".join(jars)}
    (place / ARCHIVE).touch()
    assert OPTIONS not in driver_settings(jars), "it could not be made"
    (place / ARCHIVE).write_text("classes")
    named = driver_settings(jars).get(OPTIONS)
    assert (named is None) == ('"' in folder)
    assert named is None or shlex.split(named)[0] == f"-XX:SharedArchiveFile={place / ARCHIVE}"


def test_java_starts_with_one_collector_whoever_chose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    jars = [str(next(JARS.glob("*.jar")))]
    collectors = set()
    for chosen in ("", "-Xmx64m -XX:+UseSerialGC", "-XX:+UseG1GC"):
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", chosen)
        options = shlex.split(driver_settings(jars)[OPTIONS])
        started = java(*options, "-Xlog:gc", "-cp", jars[0])
        assert started.returncode == 0, started.stderr
        collectors.add(started.stdout.split("Using ")[1].splitlines()[0])
    assert collectors == {"Parallel", "Serial", "G1"}


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_collector_that_the_environment_names_is_not_named_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = [str(next(JARS.glob("*.jar")))]
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    assert "GC" in driver_settings(jars)[OPTIONS]
    monkeypatch.setenv(name, "-Xmx1g -XX:+UseZGC")
    assert "GC" not in driver_settings(jars)[OPTIONS]
