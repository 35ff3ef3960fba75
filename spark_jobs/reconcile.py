"""spark-submit entry point, with the arguments of `twinstream reconcile`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["reconcile", *sys.argv[1:]])
