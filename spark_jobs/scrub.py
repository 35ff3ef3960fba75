"""spark-submit entry point, with the arguments of `twinstream scrub`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["scrub", *sys.argv[1:]])
