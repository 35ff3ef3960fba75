"""spark-submit entry point, with the arguments of `twinstream replay`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["replay", *sys.argv[1:]])
