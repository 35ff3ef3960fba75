"""What all tests share: one Spark session, one PostgreSQL server, and a seed that is printed and can be repeated."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.core
import pytest

from tests.servers.postgres import postgres_database as fresh_database
from tests.servers.postgres import postgres_server

ROOT = Path(__file__).resolve().parent.parent
JARS = Path(os.environ.setdefault("TWINSTREAM_JARS", str(ROOT / ".jars")))

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Most tests look at few rows: there interpreting a query is quicker than compiling it. See `compiled`."""

# A test run is over before Java's optimising compiler would pay; on few cores it only takes time from the tests. The
# other one is given more room than Java would: what does not fit is thrown away and compiled again.
os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"

# Another Spark on this machine must not lend its jars or settings to the tests.
for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
    os.environ.pop(name, None)

hypothesis.settings.register_profile(
    "twinstream",
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("twinstream")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also what takes many minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what takes long, unless it is asked for by its option or by its file's name."""
    named = any(argument.partition("::")[0].endswith(".py") for argument in config.args)
    if config.getoption("--long") or named:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_configure(config: pytest.Config) -> None:
    """Fixes the seed of every random choice in the run: the one asked for, or a new one."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))
        hypothesis.core.global_force_seed = int(config.option.hypothesis_seed)  # type: ignore[assignment]


def pytest_report_header(config: pytest.Config) -> str:
    chosen = config.getoption("hypothesis_seed")
    return f"seed: {chosen} (repeat this run's random choices with --hypothesis-seed={chosen})"


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The run's seed, for tests that draw random data without Hypothesis."""
    return int(pytestconfig.getoption("hypothesis_seed"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """One small local Spark with Delta for the whole run."""
    from pyspark.sql import SparkSession

    from twinstream.driver import driver_settings
    from twinstream.spark import CLASSIC_SETTINGS, FORGETFUL

    jars = sorted(JARS.glob("*.jar"))
    if not jars:
        pytest.fail(f"No jars in {JARS}: run bin/setup.")
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **driver_settings([str(jar) for jar in jars]),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
        **CLASSIC_SETTINGS,
        **FORGETFUL,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **INTERPRETED,
    }
    builder = SparkSession.builder.master("local[2]").appName("twinstream-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def compiled(spark: Any) -> Iterator[None]:
    """Queries are compiled, as they are outside of the tests; for modules where that may make a difference."""
    for key, value in COMPILED.items():
        spark.conf.set(key, value)
    yield
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the run."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database for one test."""
    with fresh_database(postgres_url) as url:
        yield url
