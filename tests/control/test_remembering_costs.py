"""What is kept of a look at all jobs, and for how long."""

from __future__ import annotations

from noonday.control.remembering import Worth
from noonday.testing import ManualClock


class Look:
    """Takes so many seconds, and counts how often it was taken."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.taken = 0

    async def __call__(self) -> int:
        self.taken += 1
        self.clock.advance(seconds=self.seconds)
        return self.taken


async def test_what_cost_much_is_kept_for_longer() -> None:
    clock = ManualClock()
    worth: Worth[int] = Worth(clock)
    look = Look(clock, 0.5)
    assert [await worth.get("", look) for _ in range(3)] == [1, 1, 1]
    clock.advance(seconds=9.9)
    assert await worth.get("", look) == 1
    clock.advance(seconds=0.2)
    assert await worth.get("", look) == 2


async def test_what_is_cheap_is_found_out_anew() -> None:
    clock = ManualClock()
    worth: Worth[int] = Worth(clock, cheap=0.25)
    look = Look(clock, 0.2)
    assert [await worth.get("", look) for _ in range(3)] == [1, 2, 3]
    look.seconds = 0.3
    assert [await worth.get("", look) for _ in range(3)] == [4, 4, 4]


async def test_what_is_asked_of_another_state_is_found_out_anew() -> None:
    clock = ManualClock()
    worth: Worth[int] = Worth(clock)
    look = Look(clock, 1.0)
    assert [await worth.get(key, look) for key in ("a", "a", "b", "b")] == [1, 1, 2, 2]
