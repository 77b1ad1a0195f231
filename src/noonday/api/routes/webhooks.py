"""`/api/v2/triggers/webhook`: calls from outside that start jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Request, Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.callers import open_to_all
from noonday.api.services import Ask, Services, v2_is_on
from noonday.api.triggers import DeliveryShape, delivery_json
from noonday.api.waiting import Prefer, applied, settled, wished
from noonday.api.webhooks import received
from noonday.domain.execution import ExecutionState
from noonday.store.deliveries import Started

router = Router(prefix="/api/v2/triggers", tags=["triggers"], dependencies=[Depends(v2_is_on), open_to_all])

_MOST_WAITED_FOR: Final = 20
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": DeliveryShape, "description": "taken; nothing may have matched"},
    200: {"model": DeliveryShape, "description": "all runs have ended while the caller waited"},
    401: {"description": "the signature is missing, wrong or too old; or nobody knows who calls"},
    403: {"description": "the caller may not run jobs"},
}
_SIGNED: Final = [
    {"in": "header", "name": name, "required": False, "schema": {"type": "string"}, "description": words}
    for name, words in (
        ("X-Webhook-Signature", "`sha256=` and the hex of the HMAC-SHA256 over `timestamp.body`"),
        ("X-Webhook-Timestamp", "when it was signed: seconds, milliseconds or ISO 8601"),
        ("webhook-id", "Standard Webhooks: the id of the delivery, signed"),
        ("webhook-timestamp", "Standard Webhooks: when it was signed, in seconds"),
        ("webhook-signature", "Standard Webhooks: `v1,` and the base64 of the HMAC-SHA256"),
    )
]
_NAMED: Final = {
    "in": "header",
    "name": "X-Webhook-Path",
    "required": False,
    "schema": {"type": "string", "maxLength": 512},
    "description": "the path, where neither the address nor the body names it",
}


def _described(parameters: Sequence[Any], schema: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}, "*/*": {"schema": {}}}
    return {"parameters": list(parameters), "requestBody": {"required": False, "content": content}}


_WHOLE: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "maxLength": 512},
        "webhook_path": {"type": "string", "maxLength": 512},
        "pattern": {"type": "string", "maxLength": 512},
        "data": {},
        "payload": {},
    },
}


@router.post(
    "/webhook",
    status_code=202,
    responses=_ANSWERS,
    summary="Start the jobs that wait for a path, given in the body or a header",
    openapi_extra=_described([*_SIGNED, _NAMED], _WHOLE),
)
async def call_webhook(request: Request, ask: Ask, prefer: Prefer = None) -> Response:
    return await _answer(request, ask, "", prefer)


@router.post(
    "/webhook/{path:path}",
    status_code=202,
    responses=_ANSWERS,
    summary="Start the jobs that wait for the path",
    openapi_extra=_described(_SIGNED, {}),
)
async def call_webhook_at(
    path: Annotated[str, Path(max_length=512)], request: Request, ask: Ask, prefer: Prefer = None
) -> Response:
    return await _answer(request, ask, path, prefer)


async def _answer(request: Request, ask: Services, path: str, prefer: str | None) -> Response:
    what = await received(request, ask, path)
    receipt = await ask.triggers.deliver(what.call, what.id)
    entries = receipt.delivery.started
    headers = {"Location": f"/api/v2/executions/{entries[0]['execution_id']}"} if len(entries) == 1 else {}
    status = 202
    if entries and wished(prefer) and len(entries) <= _MOST_WAITED_FOR:
        entries, ended = await _waited(ask, entries, prefer)
        status, headers = (200, headers | applied(prefer)) if ended else (202, headers)
    shown = delivery_json(receipt.delivery, replayed=receipt.replayed, executions=entries)
    return JSONResponse(shown | ({"delivery_id": what.named} if what.named else {}), status, headers=headers)


async def _waited(
    ask: Services, entries: Sequence[Started], prefer: str | None
) -> tuple[tuple[Started, ...], bool]:
    """The entries with the states they came to, and whether all have ended."""
    waiting = [entry for entry in entries if entry["status"] != ExecutionState.SKIPPED.value]
    async with asyncio.TaskGroup() as group:
        tasks = {
            entry["execution_id"]: group.create_task(settled(ask, entry["execution_id"], prefer))
            for entry in waiting
        }
    ended = {key: run.state.value for key, task in tasks.items() if (run := task.result()) is not None}
    shown = tuple({**entry, "status": ended.get(entry["execution_id"], entry["status"])} for entry in entries)
    return shown, len(ended) == len(waiting)
