"""What runs of the demonstration bring, write and complain about."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from noonday.cli.demo.fleet import LAST, LINE, PLAIN, RED, Member
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job
from noonday.domain.outcome import Result, Usage
from noonday.domain.target import CommandTarget, FetchTarget, ServiceTarget

__all__ = ["chance", "output", "result", "stack"]

Chance = Callable[[str], float]
_STACK: Final = (
    "Traceback (most recent call last):\n"
    '  File "/srv/{service}/jobs.py", line {line}, in run\n'
    "    answer = await client.send(batch)\n"
    '  File "/srv/{service}/client.py", line 88, in send\n'
    "    raise UpstreamError(answer)\n"
    "UpstreamError: {error}\n"
)
_TRACE: Final = (
    "Traceback (most recent call last):\n"
    '  File "/srv/house/{word}s.py", line 112, in main\n'
    "    check({word})\n"
    '  File "/srv/house/{word}s.py", line 71, in check\n'
    "    raise Mismatch({word})\n"
    "Mismatch: {error}\n"
)


def chance(*key: object) -> float:
    """0..1, always the same for the same key."""
    digest = sha256("\0".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def result(member: Member, job: Job, by_chance: Chance) -> Result:
    usage = Usage(
        cpu_time_ms=int(member.seconds * 90 * (1 + by_chance("cpu"))),
        memory_peak_mb=round(40 + 200 * by_chance("memory"), 1),
    )
    if isinstance(job.target, FetchTarget):
        return Result(status_code=200, bytes_received=int(4000 + 60000 * by_chance("bytes")))
    if isinstance(job.target, CommandTarget):
        return Result(exit_code=0, usage=usage, output_tail=f"all {member.items or 1} parts done")
    items = int(member.items * (0.8 + 0.4 * by_chance("items")))
    lost = int(items * 0.01 * by_chance("lost"))
    return Result(
        items_processed=items, items_succeeded=items - lost, items_failed=lost, status_code=200, usage=usage
    )


def stack(member: Member, job: Job) -> str | None:
    if not isinstance(job.target, ServiceTarget):
        return None
    return _STACK.format(service=job.target.service, line=40 + len(member.name), error=member.error)


def output(member: Member, run: Execution) -> str:
    """What a program wrote."""
    if not member.word:
        return ""
    count = member.items
    told = [LINE.format(word=member.word, part=part, count=count) for part in range(1, count + 1)]
    if run.state is ExecutionState.FAILED:
        error = f"{RED}error: {member.error}{PLAIN}"
        told = [*told[: count // 2], error, _TRACE.format(word=member.word, error=member.error).rstrip()]
    else:
        told.append(LAST.format(count=count))
    return "\n".join(told) + "\n"
