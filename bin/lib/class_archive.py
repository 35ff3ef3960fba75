"""Makes the archive of Java classes that include/twinstream/driver.py names: `class_archive.py JARS ARCHIVE`.

A small Spark does once what pipelines do all the time, and Java writes down on its way out which classes that took.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def main(jars: Path, archive: Path) -> None:
    """Runs Spark with the jars in their order by name, and leaves the archive behind."""
    from pyspark.sql import SparkSession

    new = archive.with_name(f".{archive.name}.new")
    new.unlink(missing_ok=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_SUBMIT_OPTS"] = f'-XX:ArchiveClassesAtExit="{new}" {QUICK}'
    builder = SparkSession.builder.master("local[2]").appName("twinstream classes")
    builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(sorted(map(str, jars.glob("*.jar")))))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with tempfile.TemporaryDirectory(prefix="twinstream-classes-") as folder:
        spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        _work(spark, Path(folder))
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(120)
    new.replace(archive)


def _work(spark: SparkSession, folder: Path) -> None:
    """JSON in, groups, windows and joins, Parquet and Delta out and in, rows to Python and back."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    with (folder / "events.json").open("w") as file:
        for n in range(200):
            file.write(
                f'{{"id": "e{n}", "page": "p{n % 7}", "amount": {n}.25, "at": "2026-01-01T00:{n % 60:02}:00Z"}}\n'
            )
    schema = "id string, page string, amount decimal(12,2), at timestamp, _corrupt_record string"
    events = spark.read.json(str(folder / "events.json"), schema=schema, columnNameOfCorruptRecord="_corrupt_record")
    spark.read.text(str(folder / "events.json")).select(F.xxhash64("value")).collect()
    spark.read.format("binaryFile").load(str(folder / "events.json")).select("path", "length").collect()
    grouped = (
        events.where(F.col("page").isNotNull())
        .groupBy("page", F.window("at", "1 minute").getField("start").alias("start"))
        .agg(F.count("*").alias("n"), F.sum("amount").alias("total"), F.max_by("id", "at").alias("last"))
    )
    for mode in ("overwrite", "append"):
        grouped.withColumn("part", F.col("n") % 2).write.partitionBy("part").mode(mode).parquet(str(folder / "parquet"))
        grouped.write.format("delta").mode(mode).save(str(folder / "delta"))
    stored = spark.read.format("delta").load(str(folder / "delta"))
    ranked = stored.withColumn("rank", F.row_number().over(Window.partitionBy("page").orderBy("start")))
    joined = ranked.drop("n").join(grouped.select("page", "start", "n"), ["page", "start"], "left")
    both = joined.unionByName(ranked.drop("n"), allowMissingColumns=True)
    both.persist()
    both.groupBy(F.xxhash64("page").bitwiseAND(7)).agg(F.bit_xor(F.xxhash64("start", "total"))).collect()
    both.toArrow()
    both.unpersist()
    made = spark.createDataFrame([(1, "a", [1, 2]), (2, None, [])], "k bigint, s string, a array<int>")
    made.select("k", F.explode_outer("a"), F.struct("s").alias("s")).sort("k").collect()
    spark.sql(f"describe history delta.`{folder / 'delta'}`").collect()
    stored.mapInArrow(lambda batches: batches, stored.schema).count()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
