"""spark-submit entry point, with the arguments of `twinstream reconcile`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["reconcile", *sys.argv[1:]])
