"""`noonday config`: what is in force, and why."""

from __future__ import annotations

from noonday.cli import output, tables
from noonday.cli.flags import Json, ServeFlags
from noonday.settings import load

__all__ = ["config"]

_NONE = ServeFlags()


def config(
    *,
    changed: bool = False,
    json: Json = False,
    flags: ServeFlags = _NONE,
) -> None:
    """Print every setting in force and where it comes from. Secrets are hidden.

    The flags of `serve` are understood, to see what they would lead to.

    Parameters
    ----------
    changed:
        Only what differs from the defaults.
    """
    lines = [line for line in load(**flags.given()).sources() if not changed or line.origin != "default"]
    if json:
        output.data({line.name: {"value": line.value, "source": line.origin} for line in lines})
    elif lines:
        tables.table(["setting", "value", "source"], [[line.name, line.value, line.origin] for line in lines])
    else:
        output.say("every setting has its default")
