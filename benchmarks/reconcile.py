"""Comparing against its peers, in one run on the same Delta tables: 6 columns, none, 4 and 50,000 rows different.

The floor is count and XOR of xxhash64 over both sides. Peers are spark-extension's `diff` and datacompy's
SparkSQLCompare; they are installed into benchmarks/scratch, never into the project. Two parts more: results that are
not folded yet, and how the cost grows with the rows.

    .venv/bin/python benchmarks/reconcile.py [--rows 5000000] [--only floor,ours,diff,datacompy,linear,growth]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "benchmarks" / "scratch" / "reconcile"
RESULTS = ROOT / "benchmarks" / "results"
PEERS = ("datacompy==1.1.0", "pyspark-extension==2.15.1.4.2", "ordered-set==4.1.0", "polars<1.34")
KEY = ["page", "window_start"]
NAMES = {"floor": "floor", "ours": "Twinstream", "diff": "spark-extension diff", "datacompy": "datacompy"}
CASES = {"equal": 0, "four": 4, "many": 50_000}
TARGETS = {
    ("equal", "floor"): ("at most", 1.25), ("four", "floor"): ("at most", 2.0),
    ("equal", "diff"): ("at least", 3.0), ("four", "diff"): ("at least", 2.0),
    ("equal", "datacompy"): ("at least", 15.0), ("four", "datacompy"): ("at least", 10.0),
}  # fmt: skip
FOLDED, TENTH = "folded", "a tenth not folded"
STREAM, HUNDREDTH = "the stream's side of it, all", "the stream's side of it, a hundredth is new"
GROWTH = (1_000_000, 5_000_000, 20_000_000)
PAGES = 50_000


@dataclass(frozen=True)
class Cost:
    """What a way took: seconds by the clock, and of all cores."""

    seconds: float
    cpu: float


def main() -> None:
    """Runs the chosen parts and reports."""
    arguments = _arguments()
    chosen = arguments.only.split(",")
    if {"diff", "datacompy"} & set(chosen):
        _install_peers()
    spark = _open()
    lines: list[str] = []
    costs: dict[tuple[str, str], Cost] = {}
    if {"ours", "diff", "datacompy"} & set(chosen):
        ways = [way for way in NAMES if way in chosen]
        costs = _cases(spark, arguments, ways)
        lines += _table_of_cases(costs, ways, arguments)
    if "linear" in chosen:
        lines += ["", *_linear(spark, arguments)]
    growth: dict[str, dict[int, Cost]] = {}
    if "growth" in chosen:
        growth = _growth(spark, arguments)
        lines += ["", *_table_of_growth(growth)]
    spark.stop()
    _report(lines, costs, growth, arguments)


def _cases(spark, arguments: argparse.Namespace, ways: list[str]) -> dict[tuple[str, str], Cost]:
    """Every way on every case; all must find the same differences."""
    batch = _table(spark, arguments.rows, "batch", lambda rows: rows)
    costs: dict[tuple[str, str], Cost] = {}
    for case in CASES:
        some = _planted(case, arguments)
        stream = _table(spark, arguments.rows, f"stream-{some}", lambda rows, some=some: _damaged(spark, rows, some))
        expected = (some // 4, some // 4, some - 2 * (some // 4))
        quick = {way: _way(spark, way, stream, batch) for way in ways if way != "datacompy"}
        found = _measure(quick, expected, arguments.repeat, arguments.warm)
        if "datacompy" in ways:
            found |= _measure({"datacompy": _way(spark, "datacompy", stream, batch)}, expected, 1, 0)
        for way, cost in found.items():
            costs[case, way] = cost
            print(
                f"{case:<6} {NAMES[way]:<22} {cost.seconds:8.2f} s {cost.cpu:8.2f} CPU s", file=sys.stderr, flush=True
            )
    return costs


def _planted(case: str, arguments: argparse.Namespace) -> int:
    """How many differences a case has; small tables get fewer than 50,000."""
    return min(CASES[case], max(4, arguments.rows // 100))


def _way(spark, way: str, stream, batch) -> Callable[[], tuple[int, int, int] | None]:
    """A function that compares and returns (missing, phantom, mismatched)."""

    def floor() -> None:
        from pyspark.sql import functions as F

        for side in (stream, batch):
            side.select(F.xxhash64(*side.columns).alias("h")).agg(F.count("h"), F.bit_xor("h")).collect()

    def ours() -> tuple[int, int, int]:
        from twinstream.reconcile.compare import compare
        from twinstream.reconcile.result import Difference

        counts = compare(stream, batch, KEY).counts
        assert not counts[Difference.DUPLICATED]
        return counts[Difference.MISSING], counts[Difference.PHANTOM], counts[Difference.MISMATCHED]

    def diff() -> tuple[int, int, int]:
        import gresearch.spark.diff  # noqa: F401

        rows = stream.diff(batch, *KEY).where("diff != 'N'")
        found = {row[0]: row[1] for row in rows.groupBy("diff").count().collect()}
        return found.get("I", 0), found.get("D", 0), found.get("C", 0)

    def datacompy() -> tuple[int, int, int]:
        from datacompy.spark import SparkSQLCompare

        found = SparkSQLCompare(spark, stream, batch, join_columns=KEY)
        if found.matches():
            return 0, 0, 0
        return found.df2_unq_rows.count(), found.df1_unq_rows.count(), found.all_mismatch().count()

    return {"floor": floor, "ours": ours, "diff": diff, "datacompy": datacompy}[way]


def _linear(spark, arguments: argparse.Namespace) -> list[str]:
    """A tenth of the rows in partials that are not folded, and one hundredth that is new since the last time."""
    from pyspark.sql import functions as F

    from twinstream.operators import Aggregate, count, fixed, sum_
    from twinstream.reconcile.compare import compare
    from twinstream.reconcile.digests import digest
    from twinstream.reconcile.linear import linear_fingerprint
    from twinstream.reconcile.shape import shape_of
    from twinstream.reconcile.unmerged import compare_unmerged, merges_well

    operator = Aggregate(["page"], fixed("1 minute"), {"views": count(), "spend": sum_("amount")})
    states = ["page", "window_start", "views", "spend"]
    folded = _table(spark, arguments.rows, "folded", lambda rows: rows.select(*states))
    share = {"tenth": 10, "hundredth": 100}
    several = F.col("views") > 1  # what is not folded yet is one view of them, and no row has none
    chosen = {name: (F.pmod(F.xxhash64(*KEY), F.lit(every)) == 0) & several for name, every in share.items()}
    less = F.when(chosen["tenth"], 1).otherwise(0)
    before = [(F.col("views") - less).alias("views"), (F.col("spend") - less).cast("decimal(38,2)").alias("spend")]
    base = _table(spark, arguments.rows, "base", lambda rows: rows.select(*KEY, *before))
    one = [F.lit(1).cast("bigint").alias("views"), F.lit(1).cast("decimal(38,2)").alias("spend")]
    partials = {
        name: _table(spark, arguments.rows, name, lambda rows, where=where: rows.where(where).select(*KEY, *one))
        for name, where in chosen.items()
    }
    fingerprint = lambda rows: linear_fingerprint(rows, operator)  # noqa: E731
    kept = digest(folded, shape_of(folded.schema, KEY)), fingerprint(folded)
    merged = operator.merge(base.unionByName(partials["tenth"]))

    some = spark.read.schema(base.schema).parquet(base.inputFiles()[0])

    def without_merging() -> None:
        assert merges_well(partials["tenth"].unionByName(some), operator)
        assert compare_unmerged([partials["tenth"], base], folded, operator, KEY, *kept) is not None

    ways: dict[str, Callable[[], object]] = {
        FOLDED: lambda: compare(folded, folded, KEY),
        TENTH: without_merging,
        "a tenth not folded, had it been merged": lambda: compare(merged, folded, KEY),
        STREAM: lambda: fingerprint(folded),
        HUNDREDTH: lambda: fingerprint(partials["hundredth"]),
    }
    against = {TENTH: (FOLDED, "1.5 ×"), HUNDREDTH: (STREAM, "0.3 ×")}
    lines = ["| results of a count and a sum | seconds | CPU seconds | against | target |",
             "| --- | ---: | ---: | ---: | --- |"]  # fmt: skip
    measured = _measure(
        {name: lambda run=run: (run(), None)[1] for name, run in ways.items()}, None, arguments.repeat, arguments.warm
    )
    for name, cost in measured.items():
        peer, target = against.get(name, (name, ""))
        share = f"{cost.seconds / measured[peer].seconds:.2f} × {peer}" if target else ""
        lines.append(f"| {name} | {cost.seconds:.2f} | {cost.cpu:.2f} | {share} | {target and f'at most {target}'} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def _growth(spark, arguments: argparse.Namespace) -> dict[str, dict[int, Cost]]:
    """Floor and comparison of equal tables of growing size."""
    found: dict[str, dict[int, Cost]] = {"floor": {}, "ours": {}}
    for size in (rows * arguments.rows // 5_000_000 for rows in GROWTH):
        stream, batch = (_table(spark, size, name, lambda rows: rows) for name in ("stream-0", "batch"))
        ways = {way: _way(spark, way, stream, batch) for way in found}
        for way, cost in _measure(ways, (0, 0, 0), arguments.repeat, arguments.warm).items():
            found[way][size] = cost
            print(f"{size:>11,} {NAMES[way]:<12} {cost.seconds:8.2f} s", file=sys.stderr, flush=True)
    return found


def _measure(
    ways: dict[str, Callable[[], object]], expected: tuple[int, int, int] | None, turns: int, warm: int
) -> dict[str, Cost]:
    """The median of some turns, after some that are not counted; the ways take turns, so that noise hits them all."""
    taken: dict[str, list[Cost]] = {name: [] for name in ways}
    for turn in range(warm + turns):
        for name, run in ways.items():
            began, used = time.monotonic(), _cpu_seconds()
            found = run()
            if turn >= warm:
                taken[name].append(Cost(time.monotonic() - began, _cpu_seconds() - used))
            assert found is None or found == expected, f"found {found}, planted {expected}"
    return {
        name: Cost(statistics.median(one.seconds for one in costs), statistics.median(one.cpu for one in costs))
        for name, costs in taken.items()
    }


def _cpu_seconds() -> float:
    """Of this process and its children, Spark's JVM among them (0 where there is no /proc)."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if os.getpid() in (int(fields[1]), int(stat.parent.name)):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _table(spark, rows: int, name: str, change: Callable):
    """A Delta table of so many rows, made once."""
    path = SCRATCH / f"{rows}" / name
    if not (path / "_delta_log").is_dir():
        shutil.rmtree(path, ignore_errors=True)
        change(_rows(spark, rows)).write.format("delta").save(str(path))
    return spark.read.format("delta").load(str(path))


def _rows(spark, count: int):
    """Result rows as a windowed aggregate has them."""
    from pyspark.sql import functions as F

    number = F.col("id")
    minute = (number / PAGES).cast("bigint") * 60 + 1_767_225_600
    draw = lambda salt, below: F.pmod(F.xxhash64(number, F.lit(salt)), F.lit(below))  # noqa: E731
    return spark.range(0, count, 1, 8).select(
        F.concat(F.lit("/page/"), (number % PAGES).cast("string")).alias("page"),
        F.timestamp_seconds(minute).alias("window_start"),
        F.timestamp_seconds(minute + 60).alias("window_end"),
        (draw(1, 1000) + 1).alias("views"),
        (draw(2, 10_000_000) / 100).cast("decimal(38,2)").alias("spend"),
        F.when(draw(3, 20) != 0, draw(4, 100_000) / F.lit(7.0)).alias("score"),
    )


def _damaged(spark, rows, some: int):
    """A quarter of the differences missing, a quarter phantom, the rest with another measure."""
    from pyspark.sql import functions as F

    if some == 0:
        return rows
    page = F.regexp_extract("page", r"\d+", 0).cast("bigint")
    number = ((F.unix_seconds("window_start") - 1_767_225_600) / 60).cast("bigint") * PAGES + page
    quarter = some // 4
    step = rows.count() // some
    place = F.when(number % step == 0, (number / step).cast("bigint"))
    kept = rows.withColumn("_place", F.coalesce(place, F.lit(some))).where(F.col("_place") >= quarter)
    changed = F.when(F.col("_place") < some - quarter, F.col("views") + 1).otherwise(F.col("views"))
    phantom = rows.where(place < quarter).withColumn("page", F.concat(F.lit("/phantom"), "page"))
    return kept.withColumn("views", changed).drop("_place").unionByName(phantom)


def _install_peers() -> None:
    """The peers in a virtual environment of their own, whose packages come after the project's."""
    place = SCRATCH / "venv"
    mark = place / "installed"
    if not mark.exists() or mark.read_text() != "\n".join(PEERS):
        venv.create(place, with_pip=True, clear=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", *PEERS]
        subprocess.run(pip, check=True)
        mark.write_text("\n".join(PEERS))
    sys.path.extend(str(path) for path in place.glob("lib/python*/site-packages"))


def _open():
    from twinstream.settings import Settings
    from twinstream.spark import open_session

    settings = Settings.from_env({"TWINSTREAM_HOME": str(SCRATCH / "home")})
    jars = SCRATCH / "jars"
    shutil.rmtree(jars, ignore_errors=True)
    jars.mkdir(parents=True)
    for jar in [*(ROOT / ".jars").glob("*.jar"), *SCRATCH.glob("venv/lib/python*/site-packages/pyspark/jars/*.jar")]:
        (jars / jar.name).symlink_to(jar)
    return open_session(replace(settings, jars=jars), "benchmark")


def _table_of_cases(costs: dict[tuple[str, str], Cost], ways: list[str], arguments: argparse.Namespace) -> list[str]:
    lines = ["| differences | way | seconds | CPU seconds | Twinstream's share | target |",
             "| --- | --- | ---: | ---: | ---: | --- |"]  # fmt: skip
    for case in CASES:
        number = _planted(case, arguments)
        for way in ways:
            cost, ours = costs[case, way], costs.get((case, "ours"))
            share = f"{ours.seconds / cost.seconds:.2f} ×" if ours and way != "ours" else ""
            limit = TARGETS.get((case, way))
            target = "" if limit is None else f"{limit[1]:g} ×" if way == "floor" else f"{1 / limit[1]:.2f} ×"
            row = [f"{number:,}" if number else "none", NAMES[way], f"{cost.seconds:.2f}", f"{cost.cpu:.2f}", share]
            lines.append(f"| {' | '.join([*row, target and f'at most {target}'])} |")
    return lines


def _table_of_growth(growth: dict[str, dict[int, Cost]]) -> list[str]:
    lines = ["| rows, equal | floor | Twinstream | seconds a million rows |", "| ---: | ---: | ---: | ---: |"]
    for size, ours in growth["ours"].items():
        each = ours.seconds / size * 1_000_000
        lines.append(f"| {size:,} | {growth['floor'][size].seconds:.2f} s | {ours.seconds:.2f} s | {each:.2f} |")
    return lines


def _report(lines: list[str], costs, growth, arguments: argparse.Namespace) -> None:
    head = [
        f"Printed by `.venv/bin/python benchmarks/reconcile.py --rows {arguments.rows} --repeat {arguments.repeat}` on "
        f"{os.cpu_count()} cores: {arguments.rows:,} rows,",
        f"6 columns, Delta tables, driver heap 1 GB, median of {arguments.repeat} turns (datacompy: one).",
        "",
    ]
    text = "\n".join([*head, *lines])
    print(text)
    if growth and all((case, way) in costs for case in CASES for way in NAMES):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "reconcile.md").write_text(text + "\n")
        _plot(costs, growth)


def _plot(costs: dict[tuple[str, str], Cost], growth: dict[str, dict[int, Cost]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"floor": "#ced4da", "ours": "#0b7285", "diff": "#9aa5b1", "datacompy": "#9aa5b1"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6))
    labels = [(case, way) for case in ("equal", "four") for way in NAMES]
    words = {"equal": "no difference", "four": "4 differences"}
    bars = left.barh(
        [f"{NAMES[way]}, {words[case]}" for case, way in labels],
        [costs[label].seconds for label in labels],
        color=[colours[way] for _, way in labels],
    )
    left.bar_label(bars, fmt="%.1f s", padding=3)
    left.invert_yaxis()
    left.set_xlabel("seconds (less is better)")
    for way, name in (("floor", "floor"), ("ours", "Twinstream")):
        sizes = list(growth[way])
        right.plot([size / 1e6 for size in sizes], [growth[way][size].seconds for size in sizes], "o-",
                   color=colours[way], label=name)  # fmt: skip
    right.set_xlabel("million rows, equal")
    right.set_ylabel("seconds")
    right.set_ylim(bottom=0)
    right.legend()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(RESULTS / "reconcile.png", dpi=150)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm", type=int, default=3, help="turns of each way that are not counted")
    parser.add_argument("--only", default="floor,ours,diff,datacompy,linear,growth")
    return parser.parse_args()


if __name__ == "__main__":
    main()
