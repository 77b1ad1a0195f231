"""Something to show on every page, and something to do with every button, for one service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.domain.execution import Execution
from noonday.domain.outcome import Completed, Failed, Outcome, Result
from noonday.store import breakers, outputs
from noonday.targets.bounds import clean_text
from tests.control.peers import an_instance, elect, enter
from tests.web.site import Site

_LONGEST = 500  # of a description


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """What can be put into a path, and more than one kind of it where pages differ."""

    jobs: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    def addresses(self, path: str) -> list[str]:
        if "{job}" in path:
            return [path.replace("{job}", quote(job, safe="")) for job in self.jobs]
        if "{execution}" in path:
            return [path.replace("{execution}", run) for run in self.runs]
        return [path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What people write: `name` where names are checked, `text` where all is taken, `path` in addresses."""

    name: str
    text: str
    service: str
    path: str = "ping"
    wild: str = ""  # what only runs may write


async def furnish(site: Site, texts: Texts) -> Furniture:
    """A job that failed and one that runs, waits, is paused and is off; all of the one service."""
    failed = await _job(site, texts, "digest", trigger_webhook=f"/hooks/{texts.path}", max_retries=0)
    change = {"description": f"again {texts.text}"[:_LONGEST], "trigger_channel": f"news:{texts.path}"}
    await _did(site, "PUT", f"/api/v2/jobs/{failed}", change)
    paused = await _job(site, texts, "paused", depends_on=[failed])
    off = await _job(site, texts, "off", on_success_of=[failed])
    runs = [await _ended(site, failed, Completed(result=_result(texts)))]
    runs.append(
        await _ended(
            site,
            failed,
            Failed(error=texts.text + texts.wild, stack=texts.wild + texts.text, result=_result(texts)),
        )
    )
    runs.append((await _started(site, off, texts)).id)
    waits = await _job(site, texts, "waits")
    runs.append(await _start(site, waits))
    for job, verb in ((paused, "pause"), (off, "disable")):
        await _did(site, "POST", f"/api/v2/jobs/{job}/{verb}")
    return Furniture(jobs=[failed, paused, off, waits], runs=runs)


async def furnish_house(site: Site, texts: Texts) -> None:
    """What belongs to nobody in particular: instances, a breaker, a service, a key, a delivery."""
    await enter(site.db, an_instance("one"), an_instance("two"), an_instance("three", "api"))
    await elect(site.db, "one")
    await _did(site, "POST", "/api/v2/scheduler/drain", {"instance": "two"})
    heard = {"calm.example": Heard(failures=5, error=texts.text[:_LONGEST])}
    await site.db.write(lambda conn: breakers.hear(conn, heard, BreakerPolicy(), site.clock.now()))
    service = {"name": "calm", "url": "https://calm.example", "description": texts.text[:_LONGEST]}
    await _did(site, "POST", "/api/v2/services", service)
    await _did(site, "POST", "/api/v2/keys", {"name": texts.text[:200], "role": "viewer"})
    await _did(site, "POST", "/api/v2/triggers/webhook", {"path": "/nobody", "event": texts.text})


async def _did(site: Site, method: str, path: str, body: Any = None) -> None:
    answer = await site.call(method, path, body)
    assert answer.status_code < 300, f"{method} {path}: {answer.text}"


async def _job(site: Site, texts: Texts, kind: str, **more: Any) -> str:
    target = {"type": "service", "service": texts.service, "endpoint": "/run"}
    made = await site.make(
        name=f"{texts.name}{kind}",
        target=target,
        description=texts.text[:_LONGEST],
        tags=[texts.text[start : start + 50] or "more" for start in (0, 50, 100)],
        config={"note": texts.text, texts.text[:50]: 1},
        metadata={"note": texts.text},
        overlap="allow",
        **more,
    )
    return str(made["id"])


async def _start(site: Site, job: str) -> str:
    site.clock.advance(seconds=1)
    answer = await site.call("POST", f"/api/v2/jobs/{job}/force-run")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["execution_id"])


async def _started(site: Site, job: str, texts: Texts | None = None) -> Execution:
    wanted = await _start(site, job)
    [run] = [one for one in await site.claim() if one.id == wanted]
    if texts is not None:
        written = clean_text(f"{texts.text}{texts.wild}\n")  # as targets do
        await site.db.write(lambda conn: outputs.add(conn, run.id, 1, written, site.clock.now()))
    return run


async def _ended(site: Site, job: str, outcome: Outcome) -> str:
    run = await _started(site, job)
    await site.end(run, outcome)
    return run.id


def _result(texts: Texts) -> Result:
    said = texts.wild + texts.text
    return Result(output_tail=said, value={"said": said}, metadata={"k": said})
