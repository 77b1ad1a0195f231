"""`noonday jobs add`: a job from flags or from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from noonday.api.schemas import job_json, to_job
from noonday.cli import output, showing
from noonday.cli.adding.body import checked, read
from noonday.cli.adding.how import PolicyFlags
from noonday.cli.adding.texts import Wire
from noonday.cli.adding.what import TargetFlags
from noonday.cli.adding.when import WhenFlags
from noonday.cli.desk import Desk, at_desk
from noonday.cli.flags import Db, Json, Utc
from noonday.cli.policies import defaults, vet
from noonday.clock import SystemClock
from noonday.domain.errors import Invalid, Problem
from noonday.domain.job import Job, JobId
from noonday.domain.occurrences import check
from noonday.ids import new_id
from noonday.settings import Settings, load

__all__ = ["add"]

_WHEN, _WHAT, _HOW = WhenFlags(), TargetFlags(), PolicyFlags()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where it goes and how the answer looks."""

    dry_run: bool = False
    "Only check it, and show what it means and when it would run."
    utc: Utc = False
    json: Json = False
    database_url: Db = None


_PLAIN = Way()


def add(
    name: str | None = None,
    *,
    file: Annotated[str | None, Parameter(alias="-f", allow_leading_hyphen=True)] = None,
    when: WhenFlags = _WHEN,
    what: TargetFlags = _WHAT,
    how: PolicyFlags = _HOW,
    way: Way = _PLAIN,
) -> None:
    """Add a job, from flags or from a JSON file.

    Parameters
    ----------
    name:
        A name, unique among all jobs.
    file:
        A job in the JSON of the API, or a list of jobs; - reads stdin. Flags win over what it says.
    """
    flags: Wire = when.wire() | what.wire() | how.wire() | ({"name": name} if name else {})
    bodies = [_merged(job, flags) for job in read(file)] if file else [flags]
    if len(bodies) > 1 and flags:
        raise Invalid(Problem("--file", "holds several jobs: other flags would change all of them"))
    settings = load(database_url=way.database_url)
    jobs = [_job(body, settings) for body in bodies]
    if not way.dry_run:

        async def work(desk: Desk) -> list[Job]:
            return [await desk.jobs.create(job, desk.by) for job in jobs]

        jobs = at_desk(work, way.database_url, make=True)
    _tell(jobs, way, file=file)


def _merged(job: Wire, flags: Wire) -> Wire:
    """What the file says, and flags over it; a schedule given by flags replaces the file's as a whole."""
    if "schedule_type" in flags:
        told = ("cron_expression", "schedule_time", "interval_minutes", "interval_type", "after_completion")
        job = {
            key: value
            for key, value in job.items()
            if key not in (*told, "frequency", "time_config", "run_at")
        }
    return job | flags


def _job(body: Wire, settings: Settings) -> Job:
    if not (body.get("target") or body.get("url")):
        raise Invalid(Problem("target", "is missing: say --url, --task, --service, or a command after --"))
    now = SystemClock().now()
    job = to_job(checked(body), JobId(new_id(now)), now, defaults(settings))
    check(job.timing)
    vet(settings, job)
    return job


def _tell(jobs: list[Job], way: Way, *, file: str | None) -> None:
    now = SystemClock().now()
    shown = [job_json(job, now) for job in jobs]
    if way.json:
        output.data(shown if file and len(shown) > 1 else shown[0])
        return
    for job in shown:
        if way.dry_run:
            showing.job(job, utc=way.utc)
        else:
            output.say(
                f"added {job['name']} ({job['id']}): {job['schedule_words']}; {_next(job, utc=way.utc)}"
            )


def _next(job: Wire, *, utc: bool) -> str:
    return (
        f"next run {showing.time(job['next_run_at'], utc=utc)}"
        if job["next_run_at"]
        else "no next run by itself"
    )
