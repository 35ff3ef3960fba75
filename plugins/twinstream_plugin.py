"""Registers Twinstream where Airflow loads it from this folder; an installed package registers itself."""

from importlib.metadata import entry_points

if "twinstream" not in entry_points(group="airflow.plugins").names:
    from twinstream_airflow.plugin import TwinstreamPlugin

    __all__ = ["TwinstreamPlugin"]
