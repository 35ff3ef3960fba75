"""`python -m twinstream.cli`."""

from twinstream.cli.main import main

main()
