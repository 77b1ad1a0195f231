"""The judge: compares every due time with what arrived and with what the service says. A pure function.

The valid schedule is Jepsen's for Chronos, made stricter: every due time has one execution of its own, by
identity and not by matching; and the service's own history must tell the same story as the target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from tests.cluster.history import FINAL, Arrival, Bounds, Fault, History, Row, Watched

__all__ = ["CALM", "Figures", "Report", "Violation", "check"]

CALM = "no fault near"


@dataclass(frozen=True, slots=True)
class Violation:
    kind: str  # lost, doubled, two leases, false success, unknown, stuck, early, late, …
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(slots=True, kw_only=True)
class Figures:
    """Of the due times that one fault touched."""

    due: int = 0
    skipped: int = 0
    redelivered: int = 0
    lateness: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        ordered = sorted(self.lateness)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    violations: tuple[Violation, ...]
    figures: dict[str, Figures]

    @property
    def kinds(self) -> set[str]:
        return {violation.kind for violation in self.violations}


def check(history: History, bounds: Bounds | None = None) -> Report:
    return _Check(history, bounds or Bounds()).report()


@dataclass
class _Check:
    history: History
    bounds: Bounds
    figures: dict[str, Figures] = field(default_factory=lambda: defaultdict(Figures))

    @cached_property
    def rows(self) -> dict[str, Row]:
        return {row.execution: row for row in self.history.rows}

    @cached_property
    def arrivals(self) -> dict[str, list[Arrival]]:
        """Of each execution, in the order in which they came."""
        found = defaultdict(list)
        for arrival in sorted(self.history.arrivals, key=lambda a: a.at):
            found[arrival.execution].append(arrival)
        return dict(found)

    @cached_property
    def by_job(self) -> dict[str, list[Row]]:
        found = defaultdict(list)
        for row in self.history.rows:
            found[row.job].append(row)
        return dict(found)

    def report(self) -> Report:
        found = [
            *self._each_due_time(),
            *self._one_id_for_a_slot(),
            *self._record_is_reality(),
            *self._single_runner(),
            *self._nothing_stuck(),
            *self._leaders(),
        ]
        return Report(violations=tuple(found), figures=dict(self.figures))

    def _each_due_time(self) -> Iterator[Violation]:
        for watched in self.history.watched:
            rows = self.by_job.get(watched.job, [])
            single = defaultdict(list)
            for row in rows:
                single[row.due].append(row)
            lapses = [row for row in rows if row.through is not None and row.through > row.due]
            for due in watched.dues:
                covering = single[due] or [row for row in lapses if row.due <= due <= (row.through or 0)]
                yield from self._one_due_time(watched, due, covering)

    def _one_due_time(self, watched: Watched, due: float, covering: Sequence[Row]) -> Iterator[Violation]:
        figures = self.figures[self._fault_of(due)]
        figures.due += 1
        if not covering:
            yield Violation("lost", f"{watched.job} due at {due:.0f} has no row")
            return
        if len(covering) > 1:
            yield Violation("doubled", f"{watched.job} due at {due:.0f} has {len(covering)} rows")
        row = covering[0]
        if row.state == "skipped":
            figures.skipped += 1
            if row.skip_reason not in watched.may_skip or not self._explained(due, row):
                yield Violation("skipped", f"{watched.job} due at {due:.0f} without need: {row.skip_reason}")
        elif row.state in FINAL:
            yield from self._timely(watched.job, due, row, figures)

    def _explained(self, due: float, row: Row) -> bool:
        """By a fault, or by an earlier run that was still going."""
        if any(fault.touches(due) for fault in self.history.faults):
            return True
        earlier = (one for one in self.by_job[row.job] if one.due < due and one.tries)
        return row.skip_reason == "overlap" and any(one.tries[-1].ended >= due for one in earlier)

    def _timely(self, job: str, due: float, row: Row, figures: Figures) -> Iterator[Violation]:
        arrivals = self.arrivals.get(row.execution, [])
        if not arrivals:
            yield Violation("lost", f"{job} due at {due:.0f} is {row.state} and never arrived")
            return
        first = arrivals[0]
        figures.lateness.append(first.at - due)
        if first.at < due - self.bounds.early:
            yield Violation("early", f"{job} due at {due:.0f} came {due - first.at:.3f} s early")
        # An attempt that died before it was sent: the next one comes after its lease.
        orphan = any(row.lost(number) for number in range(1, first.attempt))
        deadline = max(self._deadline(due), due + self.bounds.orphan if orphan else 0.0)
        if first.at > deadline:
            late, allowed = first.at - due, deadline - due
            yield Violation("late", f"{job} due at {due:.0f} by {late:.3f} s, allowed {allowed:.1f} s")

    def _deadline(self, due: float) -> float:
        """What waits because of one fault may be met by the next."""
        deadline, waits = due + self.bounds.calm, False
        for fault in sorted(self.history.faults, key=lambda one: one.began):
            if fault.touches(due) or (waits and due < fault.began <= deadline):
                deadline, waits = max(deadline, fault.deadline(due)), True
        return deadline

    def _one_id_for_a_slot(self) -> Iterator[Violation]:
        ids = defaultdict(set)
        for arrival in self.history.arrivals:
            ids[arrival.job, arrival.due].add(arrival.execution)
        for (job, due), found in ids.items():
            if len(found) > 1:
                yield Violation("doubled", f"{job} due at {due:.0f} arrived under {len(found)} ids")

    def _record_is_reality(self) -> Iterator[Violation]:
        jobs = {watched.job for watched in self.history.watched}
        for execution, arrivals in self.arrivals.items():
            row = self.rows.get(execution)
            if row is None or (row.job, row.due) != (arrivals[0].job, arrivals[0].due):
                yield Violation("unknown", f"{arrivals[0].job}: {execution} arrived and no row tells of it")
            elif row.state == "skipped":
                yield Violation("unknown", f"{row.job}: {execution} arrived and is told as skipped")
        for row in self.history.rows:
            succeeded = any(arrival.succeeded for arrival in self.arrivals.get(row.execution, ()))
            if row.state == "completed" and not succeeded and row.job in jobs:
                yield Violation("false success", f"{row.job} due at {row.due:.0f}: no 2xx was given")
            if row.state == "failed" and succeeded and not any(t.outcome == "lost" for t in row.tries):
                yield Violation("false failure", f"{row.job} due at {row.due:.0f}: a 2xx was given")

    def _single_runner(self) -> Iterator[Violation]:
        for execution, arrivals in self.arrivals.items():
            row = self.rows.get(execution)
            numbers = [arrival.attempt for arrival in arrivals]
            if len(set(numbers)) < len(numbers):
                yield Violation("two leases", f"{execution} sent one attempt twice: {numbers}")
            for one, other in pairwise(arrivals):
                self.figures[self._fault_of(other.due)].redelivered += 1
                yield from self._after(one, other, row)

    def _after(self, one: Arrival, other: Arrival, row: Row | None) -> Iterator[Violation]:
        """Was it right to send `other` when `one` had been sent?"""
        lost = None if row is None else row.lost(min(one.attempt, other.attempt))
        zombie = other.attempt < one.attempt  # claimed before a pause, sent after it
        overlapping = one.ended is None or one.ended > other.at
        if (zombie or overlapping) and (lost is None or (lost.ended > other.at and not zombie)):
            yield Violation("two leases", f"{one.execution}: {other.attempt} beside {one.attempt}")
        near = any(self._disturbs(fault, other.at) for fault in self.history.faults)
        failed = one.status is not None and not one.succeeded
        if not near and not failed:
            yield Violation("redelivered", f"{one.job} due at {one.due:.0f} with no fault near")

    def _disturbs(self, fault: Fault, at: float) -> bool:
        return fault.began <= at <= fault.ended + fault.within + self.bounds.orphan

    def _nothing_stuck(self) -> Iterator[Violation]:
        for row in self.history.rows:
            if row.state not in FINAL:
                yield Violation("stuck", f"{row.job} due at {row.due:.0f} is {row.state}")

    def _leaders(self) -> Iterator[Violation]:
        for one, other in pairwise(self.history.polls):
            if len(one.leaders) > 1 and len(other.leaders) > 1:
                yield Violation("two leaders", f"{sorted(other.leaders)} at {other.at:.1f}")
            calm = not any(
                fault.began - 1 <= poll.at <= fault.ended + self.bounds.polls
                for fault in self.history.faults
                for poll in (one, other)
            )
            if calm and not one.leaders and not other.leaders:
                yield Violation("no leader", f"at {other.at:.1f} with no fault near")

    def _fault_of(self, due: float) -> str:
        return _name(fault for fault in self.history.faults if fault.touches(due))


def _name(faults: Iterable[Fault]) -> str:
    """The newest of them: it is the one that a fire has still to get over."""
    return max(faults, key=lambda fault: fault.began, default=_NOTHING).name


_NOTHING = Fault(name=CALM, began=0.0, ended=0.0, within=0.0)
