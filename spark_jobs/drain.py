"""spark-submit entry point, with the arguments of `twinstream drain`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["drain", *sys.argv[1:]])
