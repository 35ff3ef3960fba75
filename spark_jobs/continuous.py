"""spark-submit entry point, with the arguments of `twinstream continuous`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["continuous", *sys.argv[1:]])
