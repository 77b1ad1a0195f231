"""`noonday services`: where the services live that jobs call."""

from __future__ import annotations

from cyclopts import App

from noonday.api.dialects.services import service_json
from noonday.cli import output, showing, tables
from noonday.cli.asking import confirmed
from noonday.cli.desk import Desk, at_desk
from noonday.cli.errors import INTERRUPTED
from noonday.cli.flags import Db, Json, Yes

__all__ = ["app"]

app = App(name="services", help_epilogue="")

_COLUMNS = ["name", "url", "from", "description"]


@app.default
def list_services(*, json: Json = False, database_url: Db = None) -> None:
    """List the services, those of the settings and those that are stored."""

    async def work(desk: Desk) -> None:
        shown = [service_json(known) for known in await desk.services.everyone()]
        if json:
            output.data({"services": shown, "total": len(shown)})
            return
        if shown:
            tables.table(_COLUMNS, [_row(service) for service in shown])
        output.say(showing.counted(len(shown), len(shown), 0, "service"))

    at_desk(work, database_url)


app.command(list_services, name="list", alias="ls")


@app.command(name="set")
def set_service(
    name: str,
    url: str,
    /,
    *,
    description: str | None = None,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Say where a service lives; a running scheduler goes by it within seconds.

    Parameters
    ----------
    name:
        As jobs name it: email-service.
    url:
        Its base URL, to which the endpoints of jobs are added.
    description:
        A few words about it.
    """

    async def work(desk: Desk) -> None:
        known = await desk.services.put(name, url, description, desk.by)
        shown = service_json(known)
        output.say(f"{known.name} lives at {shown['url']}")
        if json:
            output.data(shown)

    at_desk(work, database_url, make=True)


@app.command(alias="rm")
def remove(name: str, /, *, yes: Yes = False, database_url: Db = None) -> int:
    """Forget where a service lives; jobs that call it fail until somebody says it again.

    Parameters
    ----------
    name:
        As the list shows it.
    """

    async def work(desk: Desk) -> int:
        known = await desk.services.get(name)
        if not confirmed(f"forget where {known.name} lives?", yes=yes):
            return INTERRUPTED
        await desk.services.remove(name, desk.by)
        output.say(f"forgot where {known.name} lives")
        return 0

    return at_desk(work, database_url)


def _row(service: showing.Json) -> list[str]:
    return [service["name"], service["url"], service["variable"] or "stored", service["description"][:200]]
