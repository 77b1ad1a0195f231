"""Jobs and executions as a person reads them, from the same JSON that programs get."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from rich.text import Text

from noonday.api.schemas import execution_json
from noonday.cli import output, tables
from noonday.domain.execution import Execution

__all__ = ["LIST_COLUMNS", "RUN_COLUMNS", "counted", "job", "list_row", "run_reason", "run_row", "time"]

Json = dict[str, Any]
LIST_COLUMNS = ["name", "state", "schedule", "next run", "last run", "last result"]
RUN_COLUMNS = ["#run", "state", "scheduled", "started", "#late", "#took", "#attempt", "why"]


def list_row(job: Json, *, utc: bool) -> list[str | Text]:
    last = job["last_status"]
    return [
        job["name"],
        tables.state(_state(job)),
        job["schedule_words"],
        time(job["next_run_at"], utc=utc),
        time(job["last_run_at"], utc=utc),
        tables.state(last) if last else "-",
    ]


def job(job: Json, *, utc: bool) -> None:
    tables.title(job["name"])
    tables.pairs(_facts(job, utc=utc))


def run_row(execution: Execution, *, utc: bool) -> list[str | Text]:
    run = execution_json(execution)
    return [
        str(run["execution_number"] or "-"),
        tables.state(run["status"]),
        time(run["scheduled_for"], utc=utc),
        time(run["started_at"], utc=utc),
        _millis(run["lateness_ms"]),
        _millis(run["duration_ms"]),
        str(run["attempt"] or "-"),
        run_reason(run, utc=utc),
    ]


def run_reason(run: Json, *, utc: bool) -> str:
    """Why it was skipped or waits, how it failed, or what it brought: one line."""
    told = list[str]()
    if run["skipped_count"] > 1:
        told.append(f"{run['skipped_count']:,} due times, the last at {time(run['through_at'], utc=utc)}")
    if run["reason"]:
        told.append(run["reason"])
    if run["detail"] and run["detail"] != run["reason"]:
        told.append(run["detail"])
    if run["error_message"]:
        told.append(run["error_message"].strip().splitlines()[0][:200])
    told.extend(_result(run) if not told else ())
    asked = f"asked for by {run['triggered_by_user']}" if run["triggered_by_user"] else run["cause"]
    return ": ".join(told) if run["cause"] == "schedule" else "; ".join([asked, *told])


def counted(shown: int, total: int, offset: int, noun: str = "job") -> str:
    nouns = noun if total == 1 else f"{noun}s"
    if total == 0:
        return f"no {noun}s"
    if shown == total:
        return f"{total:,} {nouns}"
    first = offset + 1 if shown else 0
    return f"{first:,} to {offset + shown:,} of {total:,} {nouns}; --offset {offset + shown} shows more"


def _facts(job: Json, *, utc: bool) -> Iterator[tuple[str, str | Text]]:
    yield "id", job["id"]
    yield "state", tables.state(_state(job))
    yield "schedule", job["schedule_words"]
    yield "next runs", "\n".join(time(run, utc=utc) for run in job["next_runs"]) or "none by itself"
    yield "last run", _last(job, utc=utc)
    yield "target", _target(job["target"])
    yield "priority", {1: "high", 2: "normal", 3: "low"}[job["priority"]]
    yield "time-out", output.span(timedelta(seconds=job["timeout_seconds"]))
    back_off = output.span(timedelta(seconds=job["retry_backoff_seconds"]))
    yield "retries", f"{job['max_retries']}, the first after {back_off}" if job["max_retries"] else "none"
    yield "overlap", f"{job['overlap']}, at most {job['max_instances']} at the same time"
    grace = output.span(timedelta(seconds=job["misfire_grace_seconds"]))
    yield "when missed", f"still useful for {grace}, catch-up {job['catch_up']}"
    for name in ("description", "tags", "depends_on", "on_success_of", "config", "metadata"):
        if job[name]:
            yield name.replace("_", " "), _plain(job[name])
    yield "created", time(job["created_at"], utc=utc)
    yield "changed", f"{time(job['updated_at'], utc=utc)}, revision {job['revision']}"


def _plain(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else ", ".join(value)
        if isinstance(value, list)
        else output.compact(value)
    )


def _last(job: Json, *, utc: bool) -> str:
    if not job["last_run_at"]:
        return "never"
    return f"{time(job['last_run_at'], utc=utc)}, {job['last_status'] or 'still running'}"


def _state(job: Json) -> str:
    return "disabled" if not job["schedule_enabled"] and job["status"] == "scheduled" else str(job["status"])


def _target(target: Json) -> str:
    rest = {
        name: value for name, value in target.items() if name != "type" and value not in (None, [], {}, "")
    }
    return f"{target['type']} {output.compact(rest)}"


def _result(run: Json) -> Iterator[str]:
    if run["status_code"] is not None:
        yield f"HTTP {run['status_code']}"
    if run["items_processed"] is not None:
        yield f"{run['items_processed']:,} items"
    if run["exit_code"]:
        yield f"exit code {run['exit_code']}"


def time(text: str | None, *, utc: bool) -> str:
    return output.time(datetime.fromisoformat(text) if text else None, utc=utc)


def _millis(value: int | None) -> str:
    return output.span(None if value is None else timedelta(milliseconds=value))
