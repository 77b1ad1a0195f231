"""One fault, tried: jobs run, the fault comes, the cluster must get over it, and the checker judges."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from tests.cluster.checker import Report, check
from tests.cluster.cluster import Cluster
from tests.cluster.faults import ORPHAN
from tests.cluster.history import Bounds, Fault, History
from tests.cluster.load import USUAL, Kind, Load
from tests.cluster.node import eventually
from tests.cluster.report import table
from tests.cluster.watch import Watch

BOUNDS = Bounds(orphan=ORPHAN)


@dataclass(slots=True)
class Trial:
    cluster: Cluster
    load: Load
    faults: list[Fault] = field(default_factory=list)
    history: History | None = None
    report: Report | None = None

    def judged(self) -> History:
        assert self.history is not None
        return self.history

    def outcomes(self, outcome: str) -> int:
        """Of how many attempts do the rows tell this?"""
        return sum(one.outcome == outcome for row in self.judged().rows for one in row.tries)


@contextmanager
def trial(cluster: Cluster, title: str, kinds: tuple[Kind, ...] = USUAL) -> Iterator[Trial]:
    """The block does the harm and notes it in `faults`; leaving it waits for the recovery and judges."""
    cluster.heal()
    load = Load(cluster, title, kinds)
    made = Trial(cluster, load)
    with Watch(cluster) as watch, ExitStack() as exits:
        exits.callback(load.remove)
        load.begin()
        eventually(lambda: load.arrived_since(0.0), 15, "not every job has run")
        yield made
        recovered = time.time()
        eventually(lambda: load.arrived_since(recovered), 25, "not every job runs again")
        history = load.finish()
        polls = watch.polls
    made.history = replace(history, faults=tuple(made.faults), polls=polls)
    made.report = check(made.history, BOUNDS)
    print(table(made.report))
    assert not made.report.violations, "\n".join(map(str, made.report.violations[:30]))
    eventually(lambda: not cluster.on_the_road(), 15, "messages stay on the streams")
