"""The engine: everything that can be done to a pipeline, for the command line, spark_jobs and Airflow alike."""

from twinstream.engine.drain import DrainRequest
from twinstream.engine.engine import Engine

__all__ = ["DrainRequest", "Engine"]
