"""`noonday audit`: who changed what, and back to how it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from noonday.api.audit import entry_json
from noonday.api.rehearsing import changes, rehearsal_json
from noonday.api.schemas import job_json
from noonday.cli import output, showing, tables
from noonday.cli.desk import Desk, at_desk
from noonday.cli.flags import Db, Json, Utc
from noonday.cli.values import check_page
from noonday.domain import search_fields, searching
from noonday.domain.errors import NoondayError
from noonday.store.audit import AuditFilter

__all__ = ["app"]

app = App(name="audit", help_epilogue="")

_COLUMNS = ["when", "who", "action", "of", "#revision", "what"]
_QUIET = frozenset({"revision", "updated_at"})
_WIDEST = 100


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Which changes."""

    actor: str | None = None
    "Who made them."
    action: str | None = None
    "What was done: create, update, pause, …"
    query: Annotated[str | None, Parameter(alias="-q")] = None
    'A search, such as "actor:ada action:pause,resume at:<2d".'
    limit: Annotated[int, Parameter(alias="-n")] = 20
    "How many at most [20]."
    offset: int = 0
    "How many to leave out first."

    def check(self) -> None:
        check_page(self.limit, self.offset)


_NEWEST = Pick()


@app.default
def list_changes(
    job: str | None = None,
    /,
    *,
    pick: Pick = _NEWEST,
    utc: Utc = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """List changes, newest first.

    Parameters
    ----------
    job:
        Name or id of a job; without it, changes of everything.
    """
    pick.check()

    async def work(desk: Desk) -> None:
        subject = None if job is None else await _subject(desk, job)
        wanted = AuditFilter(
            actor=pick.actor,
            action=pick.action,
            kind=None if job is None else "job",
            subject_id=subject,
            terms=searching.parse(pick.query or "", search_fields.AUDIT, desk.clock.now(), "--query"),
        )
        page = await desk.audit.find(wanted, limit=pick.limit, offset=pick.offset)
        shown = [entry_json(entry) for entry in page.items]
        if json:
            output.data({"entries": shown, **page.bounds})
            return
        if shown:
            tables.table(_COLUMNS, [_row(entry, utc=utc) for entry in shown])
        output.say(showing.counted(len(shown), page.total, pick.offset, "change"))

    at_desk(work, database_url)


app.command(list_changes, name="list", alias="ls")


@app.command
def revert(
    job: str,
    revision: int,
    /,
    *,
    dry_run: bool = False,
    json: Json = False,
    database_url: Db = None,
) -> None:
    """Give a job the definition that it had in an earlier revision. A pause stays a pause.

    Parameters
    ----------
    job:
        Name or id.
    revision:
        As the list of changes shows it.
    dry_run:
        Only say what would change.
    """

    async def work(desk: Desk) -> None:
        verb = desk.audit.revert((await desk.job(job)).id, revision, desk.by)
        if dry_run:
            found = await desk.jobs.rehearse(verb, job)
            if json:
                kept = {"kept_secrets": list(verb.kept_secrets)}
                output.data(rehearsal_json(found, desk.clock.now()) | kept)
                return
            lines = [f"{one['field']}: {_told(one)}" for one in changes(found)]
            output.say(*(lines or ["nothing would change"]))
        else:
            made = await desk.jobs.do(verb)
            output.say(f"{made.name} is as it was in revision {revision}, now revision {made.revision}")
            if json:
                output.data(job_json(made, desk.clock.now()))
        if verb.kept_secrets:
            output.say(f"secrets stay as they are today: {', '.join(verb.kept_secrets)}")

    at_desk(work, database_url)


async def _subject(desk: Desk, job: str) -> str:
    try:
        return await desk.audit.subject(job)
    except NoondayError as exc:
        raise await desk.hinted(exc, job) from exc


def _row(entry: showing.Json, *, utc: bool) -> list[str]:
    number = entry["revision"]
    return [
        showing.time(entry["at"], utc=utc),
        entry["actor"],
        entry["action"],
        f"{entry['kind']} {entry['subject_id']}",
        "-" if number is None else str(number),
        _what(entry),
    ]


def _what(entry: showing.Json) -> str:
    """A few words: the name of what came or went, or the fields that changed."""
    before, after = entry["before"], entry["after"]
    if before is None or after is None:
        there = after or before or {}
        return str(there.get("name") or there.get("execution_id") or "-")
    names = [name for name in {**before, **after} if name not in _QUIET]
    told = "; ".join(
        f"{name}: {_told({'before': before.get(name), 'after': after.get(name)})}" for name in names
    )
    return told if len(told) <= _WIDEST else told[: _WIDEST - 3] + "..."


def _told(change: dict[str, Any]) -> str:
    return f"{output.compact(change['before'])} → {output.compact(change['after'])}"
