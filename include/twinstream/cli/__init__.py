"""The command line: `twinstream`."""

from twinstream.cli.main import run

__all__ = ["run"]
