"""What may be sent: TypedDicts. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.bodies.access import KeyBody
from noonday.client.bodies.admin import ActionBody
from noonday.client.bodies.audit import RevertBody
from noonday.client.bodies.callbacks import HeartbeatCall, ProgressCall, ReportBody, ResultBody, ResultCall
from noonday.client.bodies.jobs import (
    BulkBody,
    CalendarBody,
    CommandBody,
    FetchBody,
    HttpBody,
    JobBody,
    PauseBody,
    PythonBody,
    ResumeBody,
    RunBody,
    ServiceBody,
    TimeConfigBody,
    WindowBody,
)
from noonday.client.bodies.registry import CronBody, DeclarationBody, RegisterAllBody, RegisterBody
from noonday.client.bodies.scheduler import DrainBody, FinishBody, MoveBody, RebalanceBody, WishBody
from noonday.client.bodies.schedules import PreviewBody
from noonday.client.bodies.services import NewServiceBody, ServiceUrlBody
from noonday.client.bodies.triggers import RegisterChannelBody, RegisterWebhookBody, TestBody

__all__ = [
    "ActionBody",
    "BulkBody",
    "CalendarBody",
    "CommandBody",
    "CronBody",
    "DeclarationBody",
    "DrainBody",
    "FetchBody",
    "FinishBody",
    "HeartbeatCall",
    "HttpBody",
    "JobBody",
    "KeyBody",
    "MoveBody",
    "NewServiceBody",
    "PauseBody",
    "PreviewBody",
    "ProgressCall",
    "PythonBody",
    "RebalanceBody",
    "RegisterAllBody",
    "RegisterBody",
    "RegisterChannelBody",
    "RegisterWebhookBody",
    "ReportBody",
    "ResultBody",
    "ResultCall",
    "ResumeBody",
    "RevertBody",
    "RunBody",
    "ServiceBody",
    "ServiceUrlBody",
    "TestBody",
    "TimeConfigBody",
    "WindowBody",
    "WishBody",
]
