"""Results against a plain Python computation that knows nothing of Spark."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.spark.operators.draws import KINDS, MINUTE, draw_table
from tests.spark.operators.roads import batch, merged_at_once, stored_partials
from twinstream.operators import Aggregate, avg, count, first, fixed, last, max_, min_, sum_

NUMBERS = {"int": 0, "big": 0, "dec7": 2, "dec12": 2, "dec28": 2, "frac28": 28}
OTHERS = ["double", "str", "time"]


def half_up(value: Fraction, scale: int) -> Decimal:
    units = math.floor(abs(value) * 10**scale + Fraction(1, 2))
    return Decimal((value < 0, tuple(map(int, str(units))), -scale))


def order(value):
    """Spark's order: NaN above all numbers, strings by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def plain(value):
    """A cell that compares: floats by sign and NaN, -0.0 and 0.0 apart."""
    return ("NaN" if math.isnan(value) else str(value)) if isinstance(value, float) else value


def one_zero(value):
    return 0.0 if isinstance(value, float) and value == 0 else value


def truth(rows, window):
    groups = {}
    for row in rows:
        if row["_kept"]:
            start = row["_event_time"] // MINUTE * MINUTE if window else None
            groups.setdefault((row["case"], start), []).append(row)
    return {group: truth_of_group(members) for group, members in groups.items()}


def truth_of_group(rows):
    by_time = sorted(rows, key=lambda row: (row["_event_time"], row["_record_id"].encode()))
    result = {"rows": len(rows)}
    for name in [*NUMBERS, *OTHERS]:
        values = [one_zero(row[name]) for row in by_time if row[name] is not None]
        result[f"n_{name}"] = len(values)
        result[f"min_{name}"] = plain(min(values, key=order)) if values else None
        result[f"max_{name}"] = plain(max(values, key=order)) if values else None
        result[f"first_{name}"] = plain(values[0]) if values else None
        result[f"last_{name}"] = plain(values[-1]) if values else None
        if name in NUMBERS:
            total = sum(map(Fraction, values))
            result[f"sum_{name}"] = half_up(total, NUMBERS[name]) if values else None
            result[f"avg_{name}"] = half_up(total / len(values), NUMBERS[name] + 4) if values else None
    return result


def collected(frame, window):
    from pyspark.sql import functions as F

    times = [name for name, type_ in frame.dtypes if type_ == "timestamp"]
    rows = frame.withColumns({name: F.unix_micros(name) for name in times}).collect()
    for row in rows:
        assert not window or row["window_end"] - row["window_start"] == MINUTE
    return {
        (row["case"], row["window_start"] if window else None): {
            name: plain(cell) for name, cell in row.asDict().items() if not name.startswith(("case", "window"))
        }
        for row in rows
    }


@pytest.mark.parametrize("window", [None, fixed("1 minute")], ids=["no window", "window"])
def test_both_roads_give_the_truth(spark, tmp_path, seed, window):
    table = draw_table({name: KINDS[name] for name in [*NUMBERS, *OTHERS]}, seed, cases=80)
    for place, row in enumerate(table.rows):
        row["_record_id"] += str(place)
    measures = {"rows": count()}
    for name in [*NUMBERS, *OTHERS]:
        measures |= {f"n_{name}": count(name), f"min_{name}": min_(name), f"max_{name}": max_(name)}
        measures |= {f"first_{name}": first(name), f"last_{name}": last(name)}
        measures |= {f"sum_{name}": sum_(name), f"avg_{name}": avg(name)} if name in NUMBERS else {}
    operator = Aggregate(["case"], window, measures)
    rows = table.frame(spark)
    expected = truth(table.rows, window)

    assert collected(batch(operator, rows), window) == expected, f"full, seed {seed}"
    merged = operator.present(merged_at_once(operator, stored_partials(operator, rows, tmp_path)))
    assert collected(merged, window) == expected, f"merge, seed {seed}"
