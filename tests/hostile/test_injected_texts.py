"""Hostile texts in every field, path, query and header: kept unchanged or refused, nothing else happens."""

from __future__ import annotations

import re
import unicodedata
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

from tests.api.caller import Api
from tests.hostile.raw import Answer
from tests.hostile.slots import ADDRESSES, HEADERS, Request, Slot, fields
from tests.hostile.texts import TEXTS, WORST

# What only our own insides say.
INSIDES = re.compile(
    r"Traceback|File \\?\"|sqlalchemy|psycopg|sqlite3|\.py\b|OperationalError|DataError|UnicodeEncodeError",
)
LONGEST_REFUSAL = 8_000
TURNS = 6  # every text goes into every sixth place, the worst of them into all


def test_there_are_enough_of_both() -> None:
    assert len(TEXTS) >= 180
    assert len(fields("run")) + len(ADDRESSES) + len(HEADERS) >= 70


async def test_a_text_is_kept_as_it_is_or_refused(api: Api, app: ASGIApp) -> None:
    run = await _furnish(api)
    await _attack(api, app, fields(run))


async def test_an_address_with_a_text_finds_something_or_nothing(api: Api, app: ASGIApp) -> None:
    await _furnish(api)
    await _attack(api, app, ADDRESSES)


async def test_a_header_with_a_text_changes_no_answer_but_its_own(api: Api, app: ASGIApp) -> None:
    await _furnish(api)
    await _attack(api, app, HEADERS)


async def _furnish(api: Api) -> str:
    """A job that is attacked, and others that nobody means."""
    await api.make(name="victim")
    await api.make(name="bystander", description="quiet", tags=["calm"])
    await api.call("POST", "/api/v2/services", {"name": "bystander", "url": "https://calm.example/"})
    await api.call("POST", "/api/v2/keys", {"name": "bystander", "role": "viewer"})
    started = await api.call("POST", "/api/v2/jobs/victim/force-run")
    await api.claim()
    return str(started.json()["execution_id"])


async def _bystanders(api: Api) -> Any:
    keys = (await api.get("/api/v2/keys"))["keys"]
    return [
        await api.get("/api/v2/jobs/bystander"),
        await api.get("/api/v2/services/bystander"),
        [key for key in keys if key["name"] == "bystander"],
        await api.get("/api/v2/jobs/bystander/executions"),
    ]


async def _attack(api: Api, app: ASGIApp, slots: list[Slot]) -> None:
    before = await _bystanders(api)
    jobs = (await api.get("/api/v2/jobs"))["total"]
    wrong: list[str] = []
    for place, slot in enumerate(slots):
        for turn, text in enumerate(TEXTS):
            if text not in WORST and (place + turn) % TURNS:
                continue
            request = slot.made(text, turn)
            answer = await request.send(app)
            if _moved(request, answer):
                continue
            jobs += slot.creates and answer.status == 201
            wrong += [f"{slot} {text[:60]!r}: {fault}" for fault in _faults(slot, text, answer)]
    assert not wrong, "\n".join(wrong[:40])
    assert await _bystanders(api) == before
    assert (await api.get("/api/v2/jobs"))["total"] - jobs in (0, 1)  # one is declared by several of them


def _faults(slot: Slot, text: str, answer: Answer) -> list[str]:
    found = []
    status, body = answer.status, answer.text
    if not (200 <= status < 300 or 400 <= status < 500):
        found.append(f"answered {status} {body[:200]}")
    if INSIDES.search(body.replace(text, "")):
        found.append(f"shows its insides: {body[:300]}")
    for name, value in answer.headers:
        if b"\r" in name + value or b"\n" in name + value or name.lower() == b"x-injected":
            found.append(f"splits the answer: {name!r} {value[:100]!r}")
    if status >= 400:
        found += _unclear(answer)
    elif slot.read is not None:
        kept = slot.read(answer.json())
        if kept not in (None, text, unicodedata.normalize("NFC", text)):
            found.append(f"kept {kept[:100]!r}")
    return found


def _moved(request: Request, answer: Answer) -> bool:
    """A slash too many: the answer leads to an address without it, here and nowhere else."""
    place = dict(answer.headers).get(b"location", b"").decode()
    slash = unquote(request.target).endswith("/")
    return answer.status == 307 and slash and place.startswith("http://localhost:8060/api/")


def _unclear(answer: Answer) -> list[str]:
    if answer.media != b"application/problem+json":
        return [f"refused as {answer.media!r}"]
    if len(answer.body) > LONGEST_REFUSAL:
        return [f"a refusal of {len(answer.body)} bytes"]
    return [] if answer.json()["error"] else ["a refusal without words"]
