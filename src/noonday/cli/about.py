"""`noonday version`."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

from noonday.cli import output
from noonday.cli.flags import Json

__all__ = ["version"]


def version(*, json: Json = False) -> None:
    """Print the version."""
    own = version_of("noonday")
    if json:
        output.data({"noonday": own, "python": platform.python_version()})
    else:
        print(own)
