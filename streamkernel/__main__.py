"""``python -m streamkernel``."""

import sys

from streamkernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
