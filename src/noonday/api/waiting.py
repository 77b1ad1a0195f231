"""`Prefer: wait=10`: a caller that starts a run may wait for its end instead of asking again and again."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import Header

from noonday.api.services import Services
from noonday.api.shapes import ExecutionShape
from noonday.domain.execution import Execution, ExecutionId

__all__ = ["LONGEST", "WAITED", "Prefer", "applied", "settled", "wished"]

LONGEST: Final = 60  # seconds
_WISH = re.compile(r'\s*wait\s*=\s*(?:([0-9]{1,9})|"([0-9]{1,9})")\s*(?:;.*)?', re.IGNORECASE)

Prefer = Annotated[
    str | None,
    Header(
        max_length=1000,
        description=f"`wait=N`: wait up to N seconds, at most {LONGEST}, for the run to end (RFC 7240)",
    ),
]
WAITED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": ExecutionShape, "description": "the run has ended while the caller waited"}
}


def wished(prefer: str | None) -> int:
    """How many seconds the caller would wait; what is not understood is no wish, as the RFC says."""
    for preference in (prefer or "").split(","):
        if match := _WISH.fullmatch(preference):
            return min(int(match[1] or match[2]), LONGEST)
    return 0


async def settled(ask: Services, execution_id: str, prefer: str | None) -> Execution | None:
    """The execution, if the caller would wait for it and it has ended by then: answer 200 instead of 202."""
    seconds = wished(prefer)
    return await ask.ends.wait(ExecutionId(execution_id), seconds) if seconds else None


def applied(prefer: str | None) -> dict[str, str]:
    """For the headers of an answer that was waited for."""
    return {"Preference-Applied": f"wait={wished(prefer)}"}
