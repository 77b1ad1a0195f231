"""`noonday key`: API keys, made and shown once, listed and revoked."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from noonday.api.access import key_json
from noonday.cli import output, showing, tables
from noonday.cli.asking import confirmed
from noonday.cli.desk import Desk, at_desk
from noonday.cli.errors import INTERRUPTED
from noonday.cli.flags import Db, Json, Utc, Yes
from noonday.cli.values import check_page, duration
from noonday.cli.words import one_of
from noonday.domain.access import Role
from noonday.domain.errors import invalid

__all__ = ["ROLES", "a_name", "app"]

app = App(name="key", help_epilogue="")

ROLES = [role.value for role in Role]
_LONGEST = timedelta(days=3660)
_LONGEST_NAME = 200
_COLUMNS = ["prefix", "name", "role", "service", "state", "created", "expires", "last used"]


@app.command
def create(
    name: str,
    /,
    *,
    role: str = Role.VIEWER.value,
    service: str | None = None,
    expires: str | None = None,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Make an API key. It goes to stdout this once: of the key itself nothing is kept.

    Parameters
    ----------
    name:
        Who holds it, as it is to appear in the audit.
    role:
        viewer, operator, admin or service [viewer].
    service:
        With the role service: whose jobs it may register, run and read.
    expires:
        After how long it ends, e.g. 90d [never].
    """
    wanted = Role(one_of("--role", role, ROLES))
    holder = a_name("NAME", name)
    lifetime = None if expires is None else duration("--expires", expires)
    if lifetime is not None and not timedelta() < lifetime <= _LONGEST:
        raise invalid("--expires", expires, f"must lie between 1s and {_LONGEST.days}d")
    if service is not None:
        a_name("--service", service)

    async def work(desk: Desk) -> None:
        now = desk.clock.now()
        ends: datetime | None = None if lifetime is None else now + lifetime
        made, text = await desk.keys.create(holder, wanted, service=service, expires_at=ends, by=desk.by)
        of_service = f" of {made.service}" if made.service else ""
        output.say(f"made a key with the role {made.role}{of_service} for {made.name}; it is shown this once")
        if json:
            output.data(key_json(made, now) | {"key": text})
        else:
            print(text)

    at_desk(work, database_url, make=True)


@app.default
def list_keys(
    *,
    limit: Annotated[int, Parameter(alias="-n")] = 50,
    offset: int = 0,
    utc: Utc = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """List the API keys, newest first, the revoked ones too.

    Parameters
    ----------
    limit:
        How many at most [50].
    offset:
        How many to leave out first.
    """
    check_page(limit, offset)

    async def work(desk: Desk) -> None:
        page = await desk.keys.page(limit=limit, offset=offset)
        shown = [key_json(key, desk.clock.now()) for key in page.items]
        if json:
            output.data({"keys": shown, **page.bounds})
            return
        if shown:
            tables.table(_COLUMNS, [_row(key, utc=utc) for key in shown])
        output.say(showing.counted(len(shown), page.total, offset, "key"))

    at_desk(work, database_url)


app.command(list_keys, name="list", alias="ls")


@app.command
def revoke(key: str, /, *, yes: Yes = False, json: Json = False, database_url: Db = None) -> int:
    """Revoke a key for good: a running scheduler refuses it within seconds.

    Parameters
    ----------
    key:
        Its prefix, as the list shows it, or its id.
    """
    if not confirmed(f"Revoke the key {key} for good?", yes=yes):
        return INTERRUPTED

    async def work(desk: Desk) -> None:
        revoked = await desk.keys.revoke(key, desk.by)
        output.say(f"revoked the key {revoked.prefix} of {revoked.name}")
        if json:
            output.data(key_json(revoked, desk.clock.now()))

    at_desk(work, database_url)
    return 0


def a_name(flag: str, text: str) -> str:
    if not (text.strip() and text.isprintable() and len(text) <= _LONGEST_NAME):
        raise invalid(flag, text, f"must be 1 to {_LONGEST_NAME} characters that can be seen")
    return text


def _row(key: showing.Json, *, utc: bool) -> list[str | Text]:
    return [
        key["prefix"],
        key["name"],
        key["role"],
        key["service"] or "-",
        _state(key),
        showing.time(key["created_at"], utc=utc),
        showing.time(key["expires_at"], utc=utc),
        showing.time(key["last_used_at"], utc=utc),
    ]


def _state(key: showing.Json) -> str:
    return "revoked" if key["revoked_at"] else "in force" if key["active"] else "expired"
