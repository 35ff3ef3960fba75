"""The command line: `twinstream`."""

from twinstream.cli.main import main

__all__ = ["main"]
