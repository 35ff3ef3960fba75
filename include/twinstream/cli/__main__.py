"""`python -m twinstream.cli`."""

from twinstream.cli.main import run

run()
