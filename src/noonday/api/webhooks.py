"""Webhook calls as they come: who may call, which path is meant, and what is brought."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request

from noonday.api.callers import demand
from noonday.api.paging import own_service
from noonday.api.services import Services
from noonday.domain.access import Right
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.signatures import is_id, proven
from noonday.domain.trigger import event_of
from noonday.domain.webhooks import path_of
from noonday.store.webhooks import Call

__all__ = ["Received", "received"]

_PATHS: Final = ("path", "webhook_path", "pattern")
_DATA: Final = ("data", "payload")
_ID_HEADERS: Final = ("webhook-id", "x-webhook-id")


@dataclass(frozen=True, slots=True)
class Received:
    """`id` is what the delivery is remembered by, `named` what its sender calls it."""

    call: Call
    id: str | None = None
    named: str | None = None


async def received(request: Request, ask: Services, in_address: str) -> Received:
    """With a secret set, a good signature is needed and enough; without one, the right to run jobs is."""
    body = await request.body()
    if ask.webhook_secrets:
        proof = proven(request.headers, body, ask.webhook_secrets, ask.clock.now())
        call = _call(request, body, in_address)
        known = proof.id or _digest(proof.mac, call.path)
        return Received(call, known, known)
    caller = await demand(request, Right.RUN)
    call = _call(request, body, in_address, own_service(caller))
    named = _named(request)
    # No two callers share an id: nobody can use up, or look up, what another one sent.
    return Received(call, None if named is None else f"{caller.name} {named}", named)


def _digest(mac: bytes, path: str) -> str:
    """Where the sender gives no id that is signed, the same call for the same path is the same delivery."""
    return hashlib.sha256(mac + path.encode()).hexdigest()


def _named(request: Request) -> str | None:
    named = next((request.headers[name] for name in _ID_HEADERS if name in request.headers), None)
    if named is not None and not is_id(named):
        raise invalid("webhook-id", named, "must have 1 to 200 visible letters, without a full stop")
    return named


def _call(request: Request, body: bytes, in_address: str, service: str | None = None) -> Call:
    event = event_of(body)
    if in_address.strip("/"):
        return Call(path=path_of(in_address), event=event, size=len(body), service=service)
    in_header = request.headers.get("x-webhook-path")
    in_body = next((event[name] for name in _PATHS if name in event), None)
    if in_header is None:
        path, event = _path(in_body), _unwrapped(event)
    else:
        path = path_of(in_header, "X-Webhook-Path")
        # Only the body is signed: a header may not lead a call away from where it was meant to go.
        if in_body is not None and _path(in_body) != path:
            raise Invalid(Problem("X-Webhook-Path", "names another path than the body"))
    return Call(path=path, event=event, size=len(body), service=service)


def _path(found: Any) -> str:
    if not isinstance(found, str):
        words = "is missing: name it in the address, in the body or in the header X-Webhook-Path"
        raise Invalid(Problem("path", words))
    return path_of(found)


def _unwrapped(event: Mapping[str, Any]) -> dict[str, Any]:
    """What stands beside the path; `data` is opened, and wins."""
    rest = {name: value for name, value in event.items() if name not in (*_PATHS, *_DATA)}
    for name in _DATA:
        match event.get(name):
            case None:
                continue
            case dict() as fields:
                rest |= fields
            case str() as text:
                rest["message"] = text
            case other:
                rest["message"] = json.dumps(other)
    return rest
