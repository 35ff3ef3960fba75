"""spark-submit entry point, with the arguments of `twinstream repair`."""

import sys

from twinstream.cli.main import main

if __name__ == "__main__":
    main(["repair", *sys.argv[1:]])
