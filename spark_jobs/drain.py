"""spark-submit entry point, with the arguments of `twinstream drain`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["drain", *sys.argv[1:]])
