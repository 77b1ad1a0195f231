"""`noonday triggers`: which webhooks and channels start which jobs; try a path, or call it."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.text import Text

from noonday.api.triggers import delivery_json, registration_json, registration_of, tested_json
from noonday.cli import output, showing, tables
from noonday.cli.asking import confirmed
from noonday.cli.desk import Desk, at_desk
from noonday.cli.flags import Db, Json, Yes
from noonday.cli.values import check_page
from noonday.cli.words import one_of
from noonday.domain.errors import Invalid, NotFound, Problem, invalid
from noonday.domain.signatures import is_id
from noonday.domain.trigger import event_of
from noonday.store.registrations import Kind
from noonday.store.webhooks import Call

__all__ = ["app"]

app = App(name="triggers", help_epilogue="")

_MOST_BYTES = 1 << 20
_COLUMNS = ["kind", "waits for", "job", "state"]
_WOULD = {"run": "would run", "skip": "would be skipped: paused", "nothing": "would not: it is off"}


@app.default
def list_triggers(
    *,
    kind: str | None = None,
    limit: Annotated[int, Parameter(alias="-n")] = 200,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """List the jobs that wait for webhooks or channels.

    Parameters
    ----------
    kind:
        webhook or channel [both].
    limit:
        How many of each at most [200].
    """
    check_page(limit)
    kinds = list(Kind) if kind is None else [Kind(one_of("--kind", kind, [each.value for each in Kind]))]

    async def work(desk: Desk) -> None:
        pages = {kind: await desk.triggers.registered(kind, limit=limit) for kind in kinds}
        if json:
            shown = {
                f"{kind}s": [registration_json(found, kind) for found in page.items]
                for kind, page in pages.items()
            }
            output.data(shown | {f"{kind}s_count": page.total for kind, page in pages.items()})
            return
        rows = [
            [kind.value, found.pattern, found.job_name, _state(registration_json(found, kind))]
            for kind, page in pages.items()
            for found in page.items
        ]
        if rows:
            tables.table(_COLUMNS, rows)
        output.say(showing.counted(len(rows), sum(page.total for page in pages.values()), 0, "trigger"))

    at_desk(work, database_url)


app.command(list_triggers, name="list", alias="ls")


@app.command
def add(
    job: str,
    /,
    *,
    webhook: str | None = None,
    channel: str | None = None,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Let calls of a webhook, or messages on a channel, start a job; one of each kind, the newest.

    Parameters
    ----------
    job:
        Its name or id.
    webhook:
        The path; * stands for one segment, ** for any number of them.
    channel:
        The channel of Redis Pub/Sub, or a pattern of channels.
    """
    wanted = {Kind.WEBHOOK: webhook, Kind.CHANNEL: channel}
    given = {kind: pattern for kind, pattern in wanted.items() if pattern is not None}
    if not given:
        raise Invalid(Problem("--webhook", "or --channel must say what the job waits for"))

    async def work(desk: Desk) -> None:
        found = await desk.job(job)
        shown: dict[str, Any] = {}
        for kind, pattern in given.items():
            changed = await desk.triggers.register(kind, found.id, pattern, desk.by)
            made = registration_of(changed, kind)
            output.say(f"{made.job_name} waits for the {kind} {made.pattern}")
            shown |= registration_json(made, kind)
        if json:
            output.data(shown)

    at_desk(work, database_url)


@app.command(alias="rm")
def remove(job: str, /, *, yes: Yes = False, json: Json = False, database_url: Db = None) -> None:
    """Let neither calls nor messages start a job; its schedule stays.

    Parameters
    ----------
    job:
        Its name or id.
    """

    async def work(desk: Desk) -> None:
        found = await desk.job(job)
        waits = [pattern for pattern in (found.trigger.webhook, found.trigger.channel) if pattern]
        if not waits:
            raise NotFound(f"{found.name!r} waits for no webhook and no channel")
        if not confirmed(f"Let {' and '.join(waits)} not start {found.name} any more?", yes=yes):
            return
        changed, before = await desk.triggers.remove(found.id, desk.by)
        output.say(f"{changed.name} waits for nothing from outside")
        if json:
            named = {"job_id": changed.id, "job_name": changed.name}
            output.data(named | {"webhook": before.webhook, "channel": before.channel})

    at_desk(work, database_url)


@app.command(name="test")
def try_path(path: str, /, *, json: Json = False, database_url: Db = None) -> None:
    """Show which jobs a call of this path would start; nothing runs.

    Parameters
    ----------
    path:
        As a sender would call it, such as /sources/42/crawl.
    """

    async def work(desk: Desk) -> None:
        shown = tested_json(*await desk.triggers.waiting_for(path))
        if json:
            output.data(shown)
            return
        if shown["jobs"]:
            rows = [[each["job_name"], each["pattern"], _WOULD[each["would"]]] for each in shown["jobs"]]
            tables.table(["job", "waits for", "and"], rows)
        output.say(f"{showing.counted(shown['matched'], shown['matched'], 0)} would hear of {shown['path']}")

    at_desk(work, database_url)


@app.command
def fire(
    path: str,
    /,
    *,
    data: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    id: str | None = None,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Start the jobs that wait for this path, as a webhook call would.

    Parameters
    ----------
    path:
        Such as /sources/42/crawl.
    data:
        What the call brings; - reads stdin. A JSON object overrides the runs' config, text is a message.
    id:
        Of the delivery: the same one again starts nothing.
    """
    body = _body(data)
    if id is not None and not is_id(id):
        raise invalid("--id", id, "must have 1 to 200 visible letters, without a full stop")

    async def work(desk: Desk) -> None:
        call = Call(path=path, event=event_of(body), size=len(body))
        receipt = await desk.triggers.deliver(call, None if id is None else f"{desk.by} {id}")
        shown = delivery_json(receipt.delivery, replayed=receipt.replayed)
        if json:
            output.data(shown)
            return
        if shown["executions"]:
            rows = [
                [run["job_name"], tables.state(run["status"]), run["execution_id"]]
                for run in shown["executions"]
            ]
            tables.table(["job", "state", "execution"], rows)
        before = "; it came before, and nothing was started now" if receipt.replayed else ""
        output.say(
            f"{showing.counted(shown['matched'], shown['matched'], 0)} waited for {shown['path']}{before}"
        )

    at_desk(work, database_url)


def _body(data: str | None) -> bytes:
    body = sys.stdin.buffer.read(_MOST_BYTES + 1) if data == "-" else (data or "").encode()
    if len(body) > _MOST_BYTES:
        raise Invalid(Problem("--data", f"is larger than {_MOST_BYTES} bytes"))
    return body


def _state(found: dict[str, Any]) -> Text:
    word = "disabled" if not found["enabled"] else "paused" if found["paused"] else "scheduled"
    return tables.state(word)
