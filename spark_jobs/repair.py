"""spark-submit entry point, with the arguments of `twinstream repair`."""

import sys

from twinstream.cli.main import run

if __name__ == "__main__":
    run(["repair", *sys.argv[1:]])
