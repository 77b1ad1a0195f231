"""Puts the demonstration into a database, or brings what is there already to where its services live now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from noonday.api.schemas import JobBody, apply_body, to_job
from noonday.cli.demo.fleet import AWAY, CHANGES, FLEET, PAUSED, PAUSED_UNTIL, SERVICES, Change, Member
from noonday.cli.demo.runs import Past
from noonday.cli.policies import defaults, vet, vet_url
from noonday.clock import SystemClock, shared_clock
from noonday.control.demonstration import BY, MARK, TAG, Demonstration
from noonday.control.services import ServiceUrls
from noonday.domain.job import Job, JobId
from noonday.ids import new_id
from noonday.instance.policies import store_options
from noonday.settings import Settings
from noonday.store.database import Database

__all__ = ["Filling"]

_AGE: Final = timedelta(days=34)


class Filling:
    """Leave the block to let go of the database."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._db = Database(settings.database_url, store_options(settings))
        self.clock: SystemClock = shared_clock(settings.database_url)
        services = ServiceUrls(self._db, self.clock, settings.services, vet=partial(vet_url, settings))
        self.show = Demonstration(self._db, self.clock, services, vet=partial(vet, settings))

    async def __aenter__(self) -> Filling:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._db.close()

    async def fill(self, base: str) -> int:
        """Returns how many jobs are new."""
        for name, words in SERVICES.items():
            await self.show.services.put(name, f"{base}/{name}", words, BY)
        there = {job.name for job in await self.show.members()}
        for name in there:
            await self._repoint(name, base)
        new = [member for member in FLEET if member.name not in there]
        past = Past(now=self.clock.now())
        for place, member in enumerate(new):
            await self._add(member, base, past, place)
        if new:
            await self._touch()
        return len(new)

    async def remove(self) -> int:
        known = {
            one.name: one.stored for one in await self.show.services.everyone() if one.stored is not None
        }
        ours = [
            name for name, words in SERVICES.items() if name in known and known[name].description == words
        ]
        for name in ours:
            await self.show.services.remove(name, BY)
        await self.show.mend(AWAY)
        return await self.show.remove(ours)

    async def _add(self, member: Member, base: str, past: Past, place: int) -> None:
        made_at = past.now - _AGE + timedelta(minutes=37 * place)
        wire = _at_base(member.body, base)
        wire |= {"tags": [*wire["tags"], TAG], "metadata": MARK}
        job = to_job(JobBody.model_validate(wire), JobId(new_id(made_at)), made_at, defaults(self._settings))
        await self.show.add(job, member.by, partial(past.lived, member))

    async def _repoint(self, name: str, base: str) -> None:
        """The server may have got another port; nothing else of the job is touched."""
        member = next((one for one in FLEET if one.name == name), None)
        if member is not None and "url" in member.body["target"]:
            body = JobBody.model_validate({"target": _at_base(member.body, base)["target"]})
            edit = partial(_edited, body=body, settings=self._settings)
            await self.show.jobs.change(name, edit, BY)

    async def _touch(self) -> None:
        """What happened since: changes, a pause, runs by hand that wait, a partner that is away."""
        for change in CHANGES:
            await self._change(change)
        name, by = PAUSED
        await self.show.jobs.pause(name, by)
        name, by, ahead = PAUSED_UNTIL
        await self.show.jobs.pause(name, by, until=self.clock.now() + ahead)
        await self.show.jobs.skip_next("digest-new-york", "mei")
        await self.show.break_down(AWAY, f"cannot connect to {AWAY}:9")
        await self.show.jobs.force_run("index-full", "ada")
        await self.show.jobs.force_run("crawl-products", "noor")

    async def _change(self, change: Change) -> None:
        body = JobBody.model_validate(change.body)
        edit = partial(_edited, body=body, settings=self._settings)
        await self.show.change(change.job, edit, change.by, self.clock.now() - change.ago)


def _edited(job: Job, body: JobBody, settings: Settings) -> Job:
    return apply_body(body, job, job.updated_at, defaults(settings))


def _at_base(body: Mapping[str, Any], base: str) -> dict[str, Any]:
    target = dict(body["target"])
    if "url" in target:
        target["url"] = target["url"].format(base=base)
    return {**body, "target": target}
