"""`/api/events`: what happens, as it happens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.event_shapes import Wanted
from noonday.api.event_stream import EventStream
from noonday.api.services import Ask
from noonday.domain.access import Right
from noonday.domain.errors import NoondayError, invalid
from noonday.domain.topics import Topic

router = Router(prefix="/api", tags=["events"])

_NUMBER = r"^\d{1,18}$"
_EXAMPLE = """retry: 3000
id: 41

id: 42
event: execution.ended
data: {"id":"42","type":"noonday.execution.ended","time":"2027-01-04T12:00:01+00:00",\
"subject":"executions/01943…","data":{"job_id":"01943…","job_name":"nightly","status":"completed"}}

"""
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "server-sent events, in a stream that does not end by itself; the data of each is "
        "JSON with `id`, `type`, `time`, `subject` and `data`",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    },
}


class EventsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topics: Annotated[
        str, Field(max_length=200, description=f"some of {', '.join(Topic)}, with commas; without it, all")
    ] = ""
    job: Annotated[str, Field(max_length=200, description="only of this job, by id or name")] | None = None
    last_event_id: (
        Annotated[str, Field(pattern=_NUMBER, description="go on behind this one; the header wins")] | None
    ) = None
    limit: (
        Annotated[int, Field(ge=1, le=1_000_000, description="end the stream after so many events")] | None
    ) = None


Last = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID", pattern=_NUMBER, description="go on behind this one, as a browser asks for it"
    ),
]


@router.get(
    "/events",
    dependencies=[needs(Right.READ)],
    status_code=200,
    response_class=EventStream,
    responses=_ANSWERS,
    summary="Listen to what happens",
)
async def listen(
    request: Request, query: Annotated[EventsQuery, Query()], ask: Ask, who: Who, last: Last = None
) -> Response:
    wanted = Wanted(
        topics=_topics(query.topics),
        job_id=None if query.job is None else (await ask.jobs.get(query.job)).id,
        caller=who,
    )
    if query.job is not None:
        await ask.owners.confine(who, job=query.job)
    after = last or query.last_event_id

    async def still() -> bool:
        try:
            return await ask.identify(request.headers) == who
        except NoondayError:
            return False

    return EventStream(
        ask.events,
        ask.clock,
        wanted,
        after=None if after is None else int(after),
        limit=query.limit,
        still=still,
    )


def _topics(text: str) -> frozenset[Topic]:
    words = {word.strip().lower() for word in text.split(",") if word.strip()}
    unknown = sorted(words - set(Topic))
    if unknown:
        raise invalid("topics", unknown[0], f"is not a topic: there are {', '.join(Topic)}")
    return frozenset(map(Topic, words)) or frozenset(Topic)
