"""`python -m noonday` is the command `noonday`."""

import sys

from noonday.cli import main

if __name__ == "__main__":
    sys.exit(main())
