"""spark-submit entry point, with the arguments of `twinstream recompute`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["recompute", *sys.argv[1:]])
