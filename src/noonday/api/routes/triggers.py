"""`/api/v2/triggers`: which webhooks and channels start which jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.fields import Label, Pattern
from noonday.api.paging import Counting, own_service
from noonday.api.routes.jobs import JobRef
from noonday.api.services import Ask, Services, v2_is_on
from noonday.api.triggers import (
    ChannelPage,
    ChannelShape,
    DeliveryPage,
    RemovedShape,
    TestedShape,
    TriggerStatus,
    WebhookPage,
    WebhookShape,
    delivery_json,
    registration_json,
    registration_of,
    tested_json,
)
from noonday.domain.access import Caller, Right
from noonday.domain.errors import NotAllowed
from noonday.store.registrations import Kind

router = Router(prefix="/api/v2/triggers", tags=["triggers"], dependencies=[Depends(v2_is_on)])


class RegisterWebhookBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    job_id: Label = Field(description="the job's id or its name")
    pattern: Pattern = Field(description="`*` stands for one segment, `**` for any number of them")


class RegisterChannelBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    job_id: Label = Field(description="the job's id or its name")
    channel: Label = Field(description="a name, or a pattern with `*`, `?` or `[ ]`")


class TestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(min_length=1, max_length=512)]


@router.get(
    "/status",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": TriggerStatus}},
    summary="How many jobs wait for webhooks and channels, and whether they are heard",
)
async def trigger_status(ask: Ask, who: Who) -> Response:
    counts = await ask.triggers.counts(own_service(who))
    return JSONResponse(
        {
            "status": "active",
            "webhooks_count": counts[Kind.WEBHOOK],
            "channels_count": counts[Kind.CHANNEL],
            "pubsub_enabled": ask.pubsub_enabled,
            "webhook_enabled": True,
            "webhook_signed": bool(ask.webhook_secrets),
        }
    )


@router.get(
    "/webhooks",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": WebhookPage}},
    summary="List the jobs that wait for webhooks",
)
async def list_webhooks(query: Annotated[Counting, Query()], ask: Ask, who: Who) -> Response:
    return await _listed(Kind.WEBHOOK, "webhooks", query, ask, who)


@router.get(
    "/channels",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": ChannelPage}},
    summary="List the jobs that wait for messages on channels",
)
async def list_channels(query: Annotated[Counting, Query()], ask: Ask, who: Who) -> Response:
    return await _listed(Kind.CHANNEL, "channels", query, ask, who)


@router.post(
    "/webhooks",
    status_code=201,
    dependencies=[needs(Right.EDIT)],
    responses={201: {"model": WebhookShape}, 404: {"description": "there is no such job"}},
    summary="Let calls of a path start a job",
)
async def register_webhook(body: RegisterWebhookBody, ask: Ask, who: Who) -> Response:
    job = await ask.triggers.register(Kind.WEBHOOK, body.job_id, body.pattern, who.name)
    return JSONResponse(registration_json(registration_of(job, Kind.WEBHOOK), Kind.WEBHOOK), 201)


@router.post(
    "/channels",
    status_code=201,
    dependencies=[needs(Right.EDIT)],
    responses={201: {"model": ChannelShape}, 404: {"description": "there is no such job"}},
    summary="Let messages on a channel start a job",
)
async def register_channel(body: RegisterChannelBody, ask: Ask, who: Who) -> Response:
    job = await ask.triggers.register(Kind.CHANNEL, body.job_id, body.channel, who.name)
    return JSONResponse(registration_json(registration_of(job, Kind.CHANNEL), Kind.CHANNEL), 201)


@router.delete(
    "/jobs/{job}",
    dependencies=[needs(Right.EDIT)],
    responses={200: {"model": RemovedShape}},
    summary="Let neither calls nor messages start a job; its schedule stays",
)
async def remove_triggers(job: JobRef, ask: Ask, who: Who) -> Response:
    changed, before = await ask.triggers.remove(job, who.name)
    named = {"job_id": changed.id, "job_name": changed.name}
    return JSONResponse(named | {"webhook": before.webhook, "channel": before.channel})


@router.get(
    "/deliveries",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": DeliveryPage}},
    summary="List the webhook calls that are remembered, newest first",
)
async def list_deliveries(query: Annotated[Counting, Query()], ask: Ask, who: Who) -> Response:
    if who.confined:
        raise NotAllowed("a service may look at its own jobs; deliveries are about everybody's")
    page = await ask.triggers.deliveries(limit=query.limit, offset=query.offset)
    shown = [delivery_json(delivery) for delivery in page.items]
    return JSONResponse({"deliveries": shown, **page.bounds})


@router.post(
    "/test",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": TestedShape}},
    summary="Which jobs would a call of this path start? Nothing runs",
)
async def try_path(body: TestBody, ask: Ask, who: Who) -> Response:
    return JSONResponse(tested_json(*await ask.triggers.waiting_for(body.path, own_service(who))))


async def _listed(kind: Kind, name: str, query: Counting, ask: Services, who: Caller) -> Response:
    page = await ask.triggers.registered(
        kind, limit=query.limit, offset=query.offset, service=own_service(who)
    )
    shown: dict[str, Any] = {name: [registration_json(found, kind) for found in page.items]}
    return JSONResponse(shown | page.bounds)
