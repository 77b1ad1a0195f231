"""`make soak`: a cluster under load and random faults for as long as you like; the seed tells which."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psycopg
from redis import RedisError

from tests.cluster import faults
from tests.cluster.checker import Report, Violation, check
from tests.cluster.cluster import Cluster, running
from tests.cluster.history import Fault
from tests.cluster.load import USUAL, Kind, Load
from tests.cluster.node import eventually
from tests.cluster.report import table
from tests.cluster.trial import BOUNDS
from tests.cluster.watch import Watch

FAULTS: tuple[faults.Action, ...] = (
    faults.kill_the_leader,
    faults.pause_the_leader,
    faults.kill_a_worker,
    faults.kill_all,
    faults.restart_one_by_one,
    faults.flush_redis,
    faults.restart_redis,
    faults.wipe_redis,
    faults.redis_away,
    faults.cut_from_redis,
    faults.silence_redis,
    faults.cut_from_postgres,
    faults.silence_postgres,
    faults.crash_postgres,
)
CROWD = 5.0  # seconds in which three instances get over a burst
LOAD = (*USUAL, Kind(name="long", number=2, version=2, every=5, delay=3.0))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="the same faults in the same order")
    parser.add_argument("--faults", default="", help="only these, by name: kill_all,flush_redis")
    chosen = parser.parse_args()
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    names = {action.__name__: action for action in FAULTS}
    try:
        actions = [names[name] for name in chosen.faults.split(",") if name] or list(FAULTS)
    except KeyError as exc:
        parser.error(f"{exc.args[0]} is not one of {', '.join(names)}")
    print(f"seed {seed}: again with ARGS='--seed {seed} --minutes {chosen.minutes:g}'", flush=True)
    with tempfile.TemporaryDirectory(prefix="nd-soak-") as folder:
        report = soak(Path(folder), chosen.minutes * 60, actions, random.Random(seed))
    print(table(report))
    for violation in report.violations[:50]:
        print(violation)
    return 1 if report.violations else 0


def soak(folder: Path, seconds: float, actions: list[faults.Action], chance: random.Random) -> Report:
    with running(folder) as cluster:
        load = Load(cluster, "soak", LOAD)
        trouble: list[Violation] = []
        done: list[Fault] = []
        with Watch(cluster, beat=1.0) as watch:
            load.begin()
            begun = time.monotonic()
            while (passed := time.monotonic() - begun) < seconds:
                time.sleep(chance.uniform(1.0, 5.0))
                action = chance.choice(actions)
                said = f"{passed / 60:5.1f} of {seconds / 60:g} min  {len(done):3d}  {action.__name__}"
                try:
                    if chance.random() < 0.5:  # with work on the road, or with an empty one
                        done.append(crowd(load))
                    done += action(cluster)
                    recover(load)
                except (AssertionError, OSError, psycopg.Error, RedisError) as exc:
                    trouble.append(Violation("not live", f"{action.__name__}: {exc}"))
                    said += f"  NOT LIVE: {exc}"
                    cluster.heal()
                arrived = len(cluster.target.arrivals())
                print(f"{said}  {arrived} arrivals, {len(trouble)} times not live", flush=True)
            history = load.finish(60)
            polls = watch.polls
        report = check(replace(history, faults=tuple(done), polls=polls), BOUNDS)
        trouble += road(cluster)
        if report.violations or trouble:
            print(cluster.told())
    return replace(report, violations=(*report.violations, *trouble))


def crowd(load: Load) -> Fault:
    """More work than slots: for a while fires are late, and a job that must not overlap skips."""
    due = load.burst()
    time.sleep(max(0.0, due - time.time()))
    return faults.moment("more work than slots", due, CROWD)


def recover(load: Load) -> None:
    """One fault after the other: only then is it clear which of them made a fire late."""
    moment = time.time()
    eventually(lambda: load.arrived_since(moment), 30, "not every job runs again")
    eventually(lambda: load.at_rest(moment), 30, "rows stay open")


def road(cluster: Cluster) -> list[Violation]:
    try:
        eventually(lambda: not cluster.on_the_road(), 30)
    except AssertionError:
        return [Violation("left over", f"on the streams: {cluster.on_the_road()}")]
    return []


if __name__ == "__main__":
    sys.exit(main())
