"""spark-submit entry point, with the arguments of `twinstream fold`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["fold", *sys.argv[1:]])
