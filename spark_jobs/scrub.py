"""spark-submit entry point, with the arguments of `twinstream scrub`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["scrub", *sys.argv[1:]])
