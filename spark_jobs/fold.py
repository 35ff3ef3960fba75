"""spark-submit entry point, with the arguments of `twinstream fold`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["fold", *sys.argv[1:]])
