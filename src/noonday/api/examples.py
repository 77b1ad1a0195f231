"""Examples of bodies for the OpenAPI document: what people send, from the pages of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["examples_of"]

Examples = Mapping[str, Any]

# By the name of the body, or by the operation where that says more.
_EXAMPLES: Final[Mapping[str, Examples]] = {
    "JobBody": {
        "every ten seconds a command": {
            "name": "hello",
            "schedule_type": "interval",
            "interval_minutes": 10,
            "interval_type": "seconds",
            "target": {"type": "command", "argv": ["echo", "on the dot"]},
        },
        "a page every six hours, first in the queue": {
            "source_id": "4f6c6d0e-9f0f-4a44-8f3e-6a2a5d0c9b11",
            "url": "https://example.com",
            "schedule_type": "cron",
            "cron_expression": "0 */6 * * *",
            "priority": 1,
            "timeout_seconds": 7200,
            "schedule_enabled": True,
        },
        "a service, on workdays in Berlin": {
            "name": "digest",
            "frequency": "daily",
            "time_config": {"hour": 9, "minute": 0},
            "timezone": "Europe/Berlin",
            "windows": [{"days": "mon-fri", "start": "08:00", "end": "18:00"}],
            "calendar": {"holidays": "DE-BY"},
            "target": {"type": "service", "service": "email-service", "endpoint": "/jobs/digest"},
            "config": {"maxUsers": 10},
            "tags": ["mail"],
        },
        "when a webhook or a message comes": {
            "name": "reindex",
            "schedule_type": "event",
            "trigger_webhook": "/sources/*/crawl",
            "trigger_channel": "content:new",
            "url": "https://example.com/reindex",
        },
    },
    "jobs_change": {
        "another time": {"cron_expression": "30 2 * * *"},
        "more patience": {"timeout_seconds": 1800, "max_retries": 5},
    },
    "jobs_patch": {
        "another time, no description": {"cron_expression": "30 2 * * *", "description": None},
        "one word of the config": {"config": {"maxUsers": 20}},
    },
    "BulkBody": {
        "which would be paused?": {"action": "pause", "filter": "tag:nightly service:email", "dry_run": True},
        "pause those twelve": {"action": "pause", "filter": "tag:nightly service:email", "expect": 12},
        "run two by name": {"action": "run", "jobs": ["nightly", "report"]},
    },
    "PreviewBody": {
        "a cron text": {"cron_expression": "0 2 * * mon", "timezone": "Europe/Berlin", "count": 3},
        "the last day of the month": {"cron_expression": "0 6 L * *"},
    },
    "RunBody": {"with another config": {"config": {"maxUsers": 1}}},
    "PauseBody": {"until the holidays are over": {"until": "2099-01-07T08:00:00+01:00"}},
    "ResumeBody": {"what was missed runs too": {"catch_up": True}},
    "DrainBody": {"one instance": {"instance": "web-3"}},
    "MoveBody": {"two jobs to the streams": {"to": 2, "jobs": ["nightly", "report"]}},
    "FinishBody": {"let there be version 1 again": {"undo": True}},
    "WishBody": {"quarters of an hour": {"slot_minutes": 15, "max_moves": 20}},
    "RebalanceBody": {"two jobs, only looked at": {"jobs": ["nightly", "report"], "dry_run": True}},
    "triggers_call_webhook": {"a path and data": {"path": "/sources/17/crawl", "data": {"depth": 2}}},
    "triggers_call_webhook_at": {"data for the run": {"depth": 2}},
    "RegisterWebhookBody": {"one segment is free": {"job_id": "reindex", "pattern": "/sources/*/crawl"}},
    "RegisterChannelBody": {"a channel": {"job_id": "reindex", "channel": "content:new"}},
    "TestBody": {"which jobs would start?": {"path": "/sources/17/crawl"}},
    "NewServiceBody": {"a service": {"name": "email-service", "url": "http://email.internal:7006"}},
    "ServiceUrlBody": {"it has moved": {"url": "http://email-2.internal:7006"}},
    "KeyBody": {
        "for a person": {"name": "ada", "role": "operator", "expires_at": "2027-12-31T00:00:00Z"},
        "for a service": {"name": "email", "role": "service", "service": "email-service"},
    },
    "RegisterBody": {
        "a weekly mail": {
            "name": "weekly-digest",
            "displayName": "Weekly Digest",
            "description": "Send weekly trending content to users",
            "cronExpression": "0 9 * * 1",
            "enabled": True,
            "jobType": "email",
            "service": "email-service",
            "endpoint": "/api/jobs/weekly-digest",
            "config": {"batchSize": 100, "maxUsers": 10000},
        }
    },
    "RegisterAllBody": {
        "all that a service has": {
            "service": "email-service",
            "jobs": [
                {
                    "name": "weekly-digest",
                    "cronExpression": "0 9 * * 1",
                    "endpoint": "/api/jobs/weekly-digest",
                }
            ],
            "prune": "disable",
        }
    },
    "CronBody": {"an hour later": {"cronExpression": "0 10 * * 1", "timezone": "Europe/Berlin"}},
    "registry_trigger_registered": {"with another config": {"config": {"maxUsers": 1}}},
    "ActionBody": {"run it now": {"action": "trigger", "schedulerId": "csv-import"}},
    "RevertBody": {"as it was": {"revision": 3}},
    "ReportBody": {"half done": {"progress": 0.5, "message": "50 of 100 feeds"}},
    "ResultBody": {
        "done": {
            "success": True,
            "itemsProcessed": 100,
            "itemsSucceeded": 99,
            "itemsFailed": 1,
            "metadata": {"batch": 7},
        },
        "failed": {"success": False, "error": "the mailbox is full", "retryable": False},
    },
    "callbacks_call": {
        "a sign of life": {"type": "heartbeat"},
        "progress": {"type": "progress", "progress": 0.5},
        "the result": {"type": "result", "success": True, "itemsProcessed": 3},
    },
}


def examples_of(operation: str, body: str) -> Examples:
    return _EXAMPLES.get(operation) or _EXAMPLES.get(body, {})
