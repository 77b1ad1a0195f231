"""The words of the OpenAPI document that no route can say: of its tags, and of proving who one is."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

ABOUT: Final = """\
One scheduler, several dialects: `/api/v2` is its own, `/api/v1`, `/api/jobs` and `/api/admin/schedulers`
are those of the schedulers that it replaces. All of them work on the same jobs.

**Errors** are problem+json (RFC 9457): `type`, `title`, `status`, `detail`, the same words under `error`,
and for wrong values `errors` with one entry for each. **Lists** take `limit` and `offset` and tell the
`total`. **Times** are RFC 3339 in UTC. Bodies are JSON of at most 1 MiB; unknown fields are refused.
Secrets are shown as `********`.
"""

LICENSE: Final[Json] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
SERVERS: Final[list[Json]] = [{"url": "/", "description": "the server that this document came from"}]

TAGS: Final[dict[str, str]] = {
    "jobs": "What runs, when, and how it is treated: create, list, change, delete, pause, resume, run.",
    "executions": "What became of each due time: runs, their attempts, and skips with their reasons.",
    "schedules": "Any schedule in words, with its next times, before it is saved.",
    "triggers": "Webhooks and channels that start jobs from outside.",
    "registry": "Services declare their jobs at each start; people look after them.",
    "services": "Where services live.",
    "scheduler": "The scheduler as a whole: instances, workers, figures, its two engines, its load.",
    "statistics": "Rates, durations and percentiles, of one job and of all.",
    "breakers": "Domains that fail are held back; let them through again.",
    "events": "What happens, as it happens.",
    "audit": "Who changed what and when, and back to an earlier revision.",
    "access": "API keys, and who am I?",
    "callbacks": "Where a run that answered 202 reports signs of life, progress and its result.",
    "admin": "Recurring jobs as schedulers that start, stop and fail.",
    "health": "Probes, and the metrics of an instance.",
    "v1": "The first version: still answers, and says where its successor is.",
}

KEYS: Final[list[Json]] = [{"bearer": []}, {"apiKey": []}]
CALLBACK: Final[list[Json]] = [{"callback": []}, {"callbackHeader": []}]
CALLBACK_HEADERS: Final = ("authorization", "x-scheduler-callback-token")

SECURITY: Final[Json] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A JWT or an API key. Nothing is needed where the server runs open on loopback.",
    },
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key."},
    "callback": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token that a target was given with its attempt.",
    },
    "callbackHeader": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Scheduler-Callback-Token",
        "description": "The same token.",
    },
}

IDEMPOTENCY_KEY: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "sent again with the same key, the call is answered as the first time and does nothing",
    "schema": {"type": "string", "maxLength": 257},
}
ETAG: Final[Json] = {"description": "for If-Match", "schema": {"type": "string", "examples": ['"3"']}}
_RETRY_AFTER: Final[Json] = {
    "Retry-After": {"description": "seconds until it is worth another try", "schema": {"type": "integer"}}
}
HEADERS: Final[dict[int, Json]] = {
    401: {"WWW-Authenticate": {"description": "Bearer", "schema": {"type": "string"}}},
    429: _RETRY_AFTER,
    503: _RETRY_AFTER,
}
