"""`noonday serve`: the scheduler in one process, or those parts of it that its roles name."""

from __future__ import annotations

from importlib.metadata import version

from noonday.cli import output
from noonday.cli.flags import ServeFlags
from noonday.instance import run_instance
from noonday.settings import Settings, is_loopback, load

__all__ = ["greeting", "serve"]

_NONE = ServeFlags()


def serve(*, flags: ServeFlags = _NONE) -> int:
    """Run until SIGTERM or Ctrl-C: the first lets running work finish, a second one ends at once."""
    settings = load(**flags.given())
    output.say(greeting(settings))
    return run_instance(settings)


def greeting(settings: Settings) -> str:
    """What is about to run, in one line."""
    store = next(line.value for line in settings.sources() if line.name == "DATABASE_URL")
    roles = settings.running_roles
    words = [f"Noonday {version('noonday')}", store]
    if "api" in roles:
        words[0] += f" on {settings.base_url if settings.port else 'a free port'}"
        reach = ", loopback only" if is_loopback(settings.host) else " beyond loopback"
        words.append("asks for a key or a token" if settings.auth else f"open without sign-in{reach}")
    if "worker" in roles:
        words.insert(2, f"{settings.workers} workers")
    if len(roles) < 3:
        words.insert(1, " and ".join(roles) + " alone")
    return " · ".join([*words, "Ctrl-C stops"])
