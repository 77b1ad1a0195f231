"""`noonday demo`: fills a database with a believable fleet and runs the scheduler and its services on it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from cyclopts import Parameter

from noonday.cli import output
from noonday.cli.asking import confirmed
from noonday.cli.database import reached, ready
from noonday.cli.demo.filling import Filling
from noonday.cli.demo.target import answering
from noonday.cli.errors import INTERRUPTED
from noonday.cli.flags import ServeFlags, Yes
from noonday.cli.serve import greeting
from noonday.domain.errors import Invalid, Problem
from noonday.instance import run_instance
from noonday.settings import Settings, is_loopback, load
from noonday.store import migrate
from noonday.web.templating import templates

__all__ = ["demo"]

_NONE: Final = ServeFlags()
_OWN: Final = "sqlite:///.noonday/demo.db"


def demo(
    *,
    remove: Annotated[bool, Parameter(help="Take the demonstration out of the database again.")] = False,
    yes: Yes = False,
    flags: ServeFlags = _NONE,
) -> int:
    """Run the scheduler on a fleet of forty jobs with a week of history, and the services that they call.

    Its database is .noonday/demo.db unless one is named; everything it adds is tagged `demo`.
    """
    settings = _settings(flags)
    if remove:
        return _remove(settings)
    if not is_loopback(settings.host) and not settings.auth:
        raise Invalid(Problem("HOST", "a demonstration without sign-in stays on loopback"))
    with reached(settings.database_url):
        migrate.upgrade(settings.database_url)  # as `serve` does when it starts
    with answering() as base:
        code = asyncio.run(_fill(settings, base, yes=yes))
        if code:
            return code
        output.say(greeting(settings))
        templates().globals["demo"] = True  # the pages of this process say so
        return run_instance(settings)


def _settings(flags: ServeFlags) -> Settings:
    settings = load(**flags.given())
    if settings.origins.get("database_url", "default") == "default":
        return load(**flags.given(), database_url=_OWN)
    return settings


async def _fill(settings: Settings, base: str, *, yes: bool) -> int:
    async with Filling(settings) as filling:
        others = await filling.show.others()
        question = f"there are {others} jobs of your own here: put the demonstration beside them?"
        if others and not yes and not confirmed(question, yes=False):
            return INTERRUPTED
        new = await filling.fill(base)
    if new:
        output.say(f"added {new} jobs with their history; noonday demo --remove takes them away")
    return 0


def _remove(settings: Settings) -> int:
    ready(settings.database_url, make=False)

    async def work() -> int:
        async with Filling(settings) as filling:
            return await filling.remove()

    output.say(f"removed {asyncio.run(work())} jobs of the demonstration")
    return 0
