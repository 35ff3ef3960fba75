"""spark-submit entry point, with the arguments of `twinstream replay`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["replay", *sys.argv[1:]])
