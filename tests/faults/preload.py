"""Imported once by the fork server, so that each command starts at once."""

import pyspark.sql.connect.functions.builtin
import pyspark.sql.connect.session
import pyspark.sql.functions  # noqa: F401

import twinstream.cli.main
import twinstream.runtime.process  # noqa: F401
