"""`noonday serve`: the whole scheduler in one process."""

from __future__ import annotations

from importlib.metadata import version

from noonday.cli import output
from noonday.cli.flags import ServeFlags
from noonday.instance import run_instance
from noonday.settings import Settings, load

__all__ = ["serve"]

_NONE = ServeFlags()


def serve(*, flags: ServeFlags = _NONE) -> int:
    """Run until SIGTERM or Ctrl-C: the first lets running work finish, a second one ends at once."""
    settings = load(**flags.given())
    output.say(_greeting(settings))
    return run_instance(settings)


def _greeting(settings: Settings) -> str:
    store = next(line.value for line in settings.sources() if line.name == "DATABASE_URL")
    reach = "open without sign-in" + (" beyond loopback" if settings.allow_open else ", loopback only")
    own = f"Noonday {version('noonday')} on {settings.base_url if settings.port else 'a free port'}"
    return f"{own} · {store} · {settings.workers} workers · {reach} · Ctrl-C stops"
