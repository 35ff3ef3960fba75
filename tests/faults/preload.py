"""Imported once by the fork server, so that each command starts at once."""

# ruff: noqa: F401

import alembic.command
import deltalake
import great_expectations
import pyarrow.parquet
import pyspark.sql.connect.functions.builtin
import pyspark.sql.connect.session
import pyspark.sql.functions

import twinstream.cli.main
import twinstream.reconcile.reconcile
import twinstream.runtime.process
