"""What jobs do in a simulated world, and the diary of what really ran: told by the runs themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from noonday.domain.outcome import Completed, Failed, Outcome
from noonday.ports import Claim, Run
from tests.simulation.universe import Process, Universe


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the runs of one job behave. Shares of the attempts; what is left over succeeds."""

    shortest: float = 0.0
    longest: float = 0.0
    fails: float = 0.0
    hangs: float = 0.0  # longer than its time-out
    deaf: float = 0.0  # hangs, and does not hear that it is to stop
    kills: float = 0.0  # takes its process with it


@dataclass(slots=True, kw_only=True)
class Body:
    """One attempt as it really happened."""

    claim: Claim
    process: Process
    began: float
    ended: float | None = None
    how: str = "runs"
    deaf: bool = False  # will not stop when told to

    @property
    def execution_id(self) -> str:
        return self.claim.execution.id

    @property
    def attempt(self) -> int:
        return self.claim.execution.attempt

    @property
    def job_id(self) -> str:
        return self.claim.job.id

    @property
    def in_flight(self) -> bool:
        """Does it go on now? What is frozen or killed does not, nor does what nobody can stop count."""
        return self.ended is None and self.process.running and not self.deaf


Watch = Callable[[Body], None]


class Bodies:
    """The target of one process: each job behaves in its own manner."""

    def __init__(
        self,
        universe: Universe,
        process: Process,
        *,
        manners: dict[str, Manner],
        began: Watch,
        ended: Watch,
        die: Callable[[], None],
        lethal: Callable[[], bool],
    ) -> None:
        self._universe = universe
        self._process = process
        self._manners = manners
        self._began = began
        self._ended = ended
        self._die = die
        self._lethal = lethal

    async def run(self, run: Run) -> Outcome:
        manner = self._manners.get(run.claim.job.id, Manner())
        fate, takes = self._draw(manner)
        body = Body(
            claim=run.claim,
            process=self._process,
            began=self._universe.time,
            deaf=fate == "deaf",
        )
        self._began(body)
        try:
            return await self._live(body, fate, takes, run)
        except asyncio.CancelledError:
            self._end(body, "stopped")
            raise

    def _draw(self, manner: Manner) -> tuple[str, float]:
        chance = self._universe.chance
        takes = manner.shortest + chance.random() * (manner.longest - manner.shortest)
        left = chance.random()
        for fate in ("fails", "hangs", "deaf", "kills"):
            left -= getattr(manner, fate)
            if left < 0:
                return ("done" if fate == "kills" and not self._lethal() else fate), takes
        return "done", takes

    async def _live(self, body: Body, fate: str, takes: float, run: Run) -> Outcome:
        if fate == "kills":
            await asyncio.sleep(takes / 2)
            body.how = "killed its process"
            self._die()
            await asyncio.Future()
        if fate == "hangs":
            await asyncio.sleep(run.timeout.total_seconds() * 10)
        if fate == "deaf":
            until = self._universe.time + run.timeout.total_seconds() + 9
            while self._universe.time < until:
                try:
                    await asyncio.sleep(until - self._universe.time)
                except asyncio.CancelledError:
                    continue
        elif takes:
            await asyncio.sleep(takes)
        if fate == "fails":
            self._end(body, "failed")
            return Failed(error="as the dice fell")
        self._end(body, "done")
        return Completed()

    def _end(self, body: Body, how: str) -> None:
        body.ended, body.how = self._universe.time, how
        self._ended(body)
