"""spark-submit entry point, with the arguments of `twinstream recompute`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["recompute", *sys.argv[1:]])
