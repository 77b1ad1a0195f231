"""When a failed attempt is tried again."""

from __future__ import annotations

from datetime import datetime, timedelta

from noonday.domain.job import RetryPolicy

LONGEST_DELAY = timedelta(hours=1)
LONGEST_WISH = timedelta(days=1)  # a target's Retry-After beyond this is a mistake, and must not bury the run


def retry_delay(policy: RetryPolicy, failures: int, chance: float) -> timedelta:
    """The wait after the `failures`-th failure: base x 2^(n-1), at most an hour.

    With jitter (full jitter) it is the share `chance`, in [0, 1), of that.
    """
    doublings = min(max(failures - 1, 0), 32)  # 2^32 microseconds are already more than an hour
    delay = min(min(policy.backoff, LONGEST_DELAY) * (1 << doublings), LONGEST_DELAY)
    return delay * chance if policy.jitter else delay


def retry_at(
    policy: RetryPolicy, failures: int, now: datetime, retry_after: timedelta | None, chance: float
) -> datetime | None:
    """The next try after the `failures`-th failure, None when the retries are used up.

    The target's own wish counts where it is longer than the back-off.
    """
    if failures > policy.max_retries:
        return None
    delay = retry_delay(policy, failures, chance)
    if retry_after is not None:
        delay = max(delay, min(retry_after, LONGEST_WISH))
    return now + delay
