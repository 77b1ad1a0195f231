"""What a remote run says it has written, put behind what is there and told."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from noonday.domain.execution import Execution
from noonday.store import events, jobs, outputs
from noonday.store.events import News
from noonday.store.jsontext import clean_text
from noonday.telemetry.masking import Veil, secrets_of

__all__ = ["write_from_afar"]


def write_from_afar(conn: Connection, execution: Execution, text: str, now: datetime) -> None:
    """The execution's row is locked, so that two reports at once do not take the same place."""
    job = jobs.get(conn, execution.job_id)
    if job is not None:
        text = Veil(secrets_of(job, execution)).over(text)
    outputs.add(conn, execution.id, execution.attempt, clean_text(text), now)
    told = News(
        at=now,
        kind="output.written",
        job_id=execution.job_id,
        execution_id=execution.id,
        payload={"attempt": execution.attempt},
    )
    events.append(conn, [told])
