"""A token bucket as a value: so many calls in a span, all at once or spread out."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    calls: int  # also how many may come at once after a quiet span
    seconds: float = 60.0

    @property
    def per_second(self) -> float:
        return self.calls / self.seconds


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many calls are left, and when that was counted."""

    left: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """What came of asking for one call."""

    bucket: Bucket
    wait: float  # seconds until the next call may come; 0 = this one may pass
    full_in: float  # seconds until the bucket is full again, if nobody calls


def take(bucket: Bucket | None, rate: Rate, at: float) -> Taking:
    """Take one call out of the bucket, or say how long to wait; without a bucket, out of a full one."""
    left = float(rate.calls) if bucket is None else _left(bucket, rate, at)
    wait = 0.0
    if left >= 1.0:
        left -= 1.0
    else:
        wait = (1.0 - left) / rate.per_second
    return Taking(bucket=Bucket(left, at), wait=wait, full_in=(rate.calls - left) / rate.per_second)


def whole_seconds(span: float) -> int:
    """Rounded up, so that whoever waits for so long comes in time; the rest of a division is not a second."""
    return max(0, math.ceil(round(span, 6)))


def _left(bucket: Bucket, rate: Rate, at: float) -> float:
    passed = max(0.0, at - bucket.at)
    return min(float(rate.calls), bucket.left + passed * rate.per_second)
