"""How a Python task's end becomes an outcome, in whichever mode it ran."""

from __future__ import annotations

import traceback
from typing import Any

from noonday.domain.outcome import Completed, Failed, Result, Usage
from noonday.targets.bounds import ERROR_CHARS, cut_stack, cut_text, kept_json, with_counts
from noonday.targets.tasks import TaskCancelled, TaskFailed

NO_USAGE = Usage()
NOTHING_TOLD = Completed()
REPORT_VARIABLE = "NOONDAY_REPORT_FD"  # tells a task's own process where to report; see child.py


def returned(value: Any, usage: Usage = NO_USAGE) -> Completed:
    """A value that cannot be kept is named in the metadata: the work was done all the same."""
    if value is None and usage is NO_USAGE:
        return NOTHING_TOLD
    kept, why_not = kept_json(value)
    metadata = {"value_dropped": why_not} if why_not else {}
    return Completed(result=with_counts(Result(value=kept, metadata=metadata, usage=usage), kept))


def raised(exc: BaseException, usage: Usage = NO_USAGE) -> Failed:
    stack = "".join(traceback.format_exception(exc)) if exc.__traceback__ else ""
    told = exc if isinstance(exc, TaskFailed) else None
    return Failed(
        error=error_text(exc),
        stack=cut_stack(stack) or None,
        retryable=told.retryable if told else True,
        retry_after=told.retry_after if told else None,
        result=Result(usage=usage),
    )


def error_text(exc: BaseException) -> str:
    """The last line of its stack: the kind and the words, also of exceptions that cannot print themselves."""
    match exc:
        case TaskFailed():
            text = str(exc)
        case TaskCancelled():
            text = "the task stopped itself with TaskCancelled though nobody had cancelled its run"
        case SystemExit():
            text = f"the task called sys.exit({exc.code!r})"
        case _:
            text = traceback.format_exception_only(exc)[-1].strip()
    return cut_text(text, ERROR_CHARS)
