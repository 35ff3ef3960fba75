"""spark-submit entry point, with the arguments of `twinstream clean`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["clean", *sys.argv[1:]])
