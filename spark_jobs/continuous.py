"""spark-submit entry point, with the arguments of `twinstream continuous`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["continuous", *sys.argv[1:]])
