"""The report for programs: JSON with a version, and back to the same value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from twinstream.errors import ReportError
from twinstream.reconcile.result import (
    Cell,
    Comparison,
    Difference,
    Expectation,
    LateEffect,
    Reconciliation,
    Sample,
    Side,
    TxidDifferences,
    Verdict,
)
from twinstream.transaction import Accounting

VERSION = 1
"""Raised when a program that reads reports would have to change."""


def to_json(result: Reconciliation) -> str:
    """The whole result, readable for people too; the order of columns and keys is kept."""
    return json.dumps(to_dict(result), ensure_ascii=False, indent=2) + "\n"


def to_dict(result: Reconciliation) -> dict[str, Any]:
    """The result as what JSON can hold."""
    found = asdict(result)
    found["verdict"] = result.verdict.value
    found["accounting"] = result.accounting.to_dict()
    found["comparison"] = comparison_to_dict(result.comparison)
    found["txids"] = [{**asdict(one), "counts": _counts(one.counts)} for one in result.txids]
    return {"schema": VERSION, **found}


def comparison_to_dict(compared: Comparison) -> dict[str, Any]:
    """Two tables compared, as what JSON can hold."""
    return {
        **asdict(compared),
        "counts": _counts(compared.counts),
        "samples": [{**asdict(sample), "kind": sample.kind.value} for sample in compared.samples],
    }


def from_json(text: str) -> Reconciliation:
    """The result that was written; one clear error for anything else."""
    try:
        return from_dict(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ReportError(
            f"This is no report of Twinstream: {type(error).__name__} {error}.",
            next_step="Reports are the JSON that `twinstream reconcile --json` writes.",
        ) from error


def from_dict(value: Mapping[str, Any]) -> Reconciliation:
    """The result from what JSON held."""
    found = dict(value)
    version = found.pop("schema")
    if version != VERSION:
        raise ReportError(
            f"The report has schema {version!r}, and this Twinstream reads {VERSION}.",
            next_step="Use the Twinstream that wrote it, or reconcile again.",
        )
    return Reconciliation(
        **{
            **found,
            "verdict": Verdict(found["verdict"]),
            "comparison": _comparison(found["comparison"]),
            "txids": tuple(TxidDifferences(**{**one, "counts": _kinds(one["counts"])}) for one in found["txids"]),
            "accounting": Accounting.from_dict(found["accounting"]),
            "late": LateEffect(**found["late"]),
            "expectations": tuple(Expectation(**one) for one in found["expectations"]),
            "causes": tuple(found["causes"]),
            "next_steps": tuple(found["next_steps"]),
        }
    )


def _comparison(value: Mapping[str, Any]) -> Comparison:
    return Comparison(
        **{
            **value,
            "stream": Side(**value["stream"]),
            "batch": Side(**value["batch"]),
            "counts": _kinds(value["counts"]),
            "samples": tuple(_sample(one) for one in value["samples"]),
            "heat": tuple(value["heat"]),
        }
    )


def _sample(value: Mapping[str, Any]) -> Sample:
    return Sample(
        **{
            **value,
            "kind": Difference(value["kind"]),
            "cells": tuple(Cell(**cell) for cell in value["cells"]),
            "txids": tuple(value["txids"]),
        }
    )


def _counts(counts: Mapping[Difference, int]) -> dict[str, int]:
    return {kind.value: counts[kind] for kind in Difference if kind in counts}


def _kinds(counts: Mapping[str, int]) -> dict[Difference, int]:
    return {Difference(kind): many for kind, many in counts.items()}
