"""For tests of jobs and of schedulers: a clock that is moved by hand, and an instance that is driven by it.

The actors are those of production; only time is yours.

    async def test_the_report_runs_every_night() -> None:
        async with ManualInstance() as scheduler:

            @scheduler.task
            async def report() -> None:
                await scheduler.clock.sleep(90)  # takes a minute and a half, of the clock moved by hand

            await scheduler.add("nightly", Cron(expression="0 2 * * *"), "report")
            await scheduler.tick(days=1)
            [run] = await scheduler.history("nightly")
            assert run.state is ExecutionState.COMPLETED
            assert run.scheduled_for.hour == 2

`tick` moves the clock from one interesting moment to the next and lets everything happen at each of them.
Several instances may share a database and a clock: `kill` one, or `pause` it, and see what the other does.
With a FlakyRoad between them, jobs of version 2 go over it, and it may be told to lose, double or delay.
"""

from __future__ import annotations

from noonday.testing.clock import ManualClock
from noonday.testing.instance import ManualInstance
from noonday.testing.road import Faults, FlakyQueue, FlakyRoad

__all__ = ["Faults", "FlakyQueue", "FlakyRoad", "ManualClock", "ManualInstance"]
