"""spark-submit entry point, with the arguments of `twinstream clean`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["clean", *sys.argv[1:]])
