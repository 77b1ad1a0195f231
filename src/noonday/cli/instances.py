"""`noonday instances`, `drain` and `resume`: who is there, and who takes work."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from noonday.api.operating import peers_json, roster_json
from noonday.cli import output, tables, values
from noonday.cli.desk import Desk, at_desk
from noonday.cli.errors import Hint
from noonday.cli.flags import Db, Json
from noonday.cli.running import TIRED
from noonday.control.instances import Peer, Roster, at_rest
from noonday.domain.errors import NotFound

__all__ = ["drain", "instances", "resume"]

_COLUMNS = ["instance", "host", "roles", "state", "leads", "road", "#busy", "#slots", "#heard of", "version"]
_LOOK_AGAIN = 0.2

Which = Annotated[str | None, Parameter(help="The id of one instance; without it, all of them.")]


def instances(*, json: Json = False, database_url: Db = None) -> None:
    """List every process that told of itself: what it does, who leads, and when it was last heard of."""

    async def work(desk: Desk) -> None:
        roster = await desk.instances.roster()
        if json:
            output.data(roster_json(roster))
            return
        if roster.peers:
            tables.table(_COLUMNS, [_row(peer) for peer in roster.peers])
        count = sum(peer.alive for peer in roster.peers)
        leader = (
            f"{roster.leader.holder} leads in term {roster.leader.term}" if roster.leader else "nobody leads"
        )
        output.say(f"{count} alive; {leader}" if roster.peers else "no instance runs on this database")

    at_desk(work, database_url)


def _summary(roster: Roster) -> str:
    if not roster.peers:
        return "no instance runs on this database"
    found = roster.leader
    leader = "nobody leads" if found is None else f"{found.holder} leads in term {found.term}"
    return f"{sum(peer.alive for peer in roster.peers)} alive; {leader}"


def drain(
    instance: Which = None,
    /,
    *,
    wait: Annotated[bool, Parameter(alias="-w")] = False,
    timeout: str | None = None,
    json: Json = False,
    database_url: Db = None,
) -> int:
    """Let workers finish what they run and take nothing new, until `noonday resume`. They go on planning.

    Parameters
    ----------
    wait:
        Follow them until nothing runs any more.
    timeout:
        With --wait: stop following after this time, e.g. 5m, with exit code 124.
    """
    patience = None if timeout is None else values.duration("--timeout", timeout)

    async def work(desk: Desk) -> int:
        asked = await _asked(desk, instance, draining=True)
        code = await _follow(desk, asked, patience) if wait and asked else 0
        _show(await _again(desk, asked), "draining", json=json)
        return code

    return at_desk(work, database_url)


def resume(instance: Which = None, /, *, json: Json = False, database_url: Db = None) -> None:
    """Let drained workers take work again."""

    async def work(desk: Desk) -> None:
        _show(await _asked(desk, instance, draining=False), "taking work again", json=json)

    at_desk(work, database_url)


async def _asked(desk: Desk, instance: str | None, *, draining: bool) -> tuple[Peer, ...]:
    act = desk.instances.drain if draining else desk.instances.resume
    try:
        return await act(instance, desk.by)
    except NotFound as exc:
        raise Hint(exc, "noonday instances") from exc


async def _follow(desk: Desk, asked: tuple[Peer, ...], patience: timedelta | None) -> int:
    """Say how many still run, until none does."""
    since, told = desk.clock.monotonic(), -1
    while not at_rest(peers := await _again(desk, asked)):
        busy = sum(peer.instance.busy for peer in peers if peer.alive)
        if busy != told:
            output.say(f"{busy} still running" if busy else "waiting for them to end")
            told = busy
        if patience is not None and desk.clock.monotonic() - since >= patience.total_seconds():
            output.say("still draining: --timeout has passed")
            return TIRED
        await asyncio.sleep(_LOOK_AGAIN)
    output.say("nothing runs any more")
    return 0


async def _again(desk: Desk, asked: tuple[Peer, ...]) -> tuple[Peer, ...]:
    """Those of them that are still there."""
    ids = {peer.instance.id for peer in asked}
    return tuple(peer for peer in (await desk.instances.roster()).peers if peer.instance.id in ids)


def _show(peers: tuple[Peer, ...], words: str, *, json: bool) -> None:
    names = ", ".join(peer.instance.id for peer in peers)
    output.say(f"{words}: {names}" if names else "no worker is running on this database")
    if json:
        output.data(peers_json(peers))


def _row(peer: Peer) -> list[Any]:
    own = peer.instance
    cells: list[str | Text] = [
        own.id,
        own.host,
        ",".join(own.roles),
        tables.state(peer.state),
        "★ leads" if peer.leads else "",
        own.road,
        str(own.busy) if own.works else "-",
        str(own.slots) if own.works else "-",
        f"{output.span(peer.silent_for)} ago",
        own.version,
    ]
    return cells
