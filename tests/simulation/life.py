"""The life of a world: it is made of a seed, things go wrong, things are mended, it comes to rest."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import Any
from unittest import mock

import structlog
from sqlalchemy import Select, func, select

from noonday.domain.execution import WaitReason
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.tables import OPEN, executions
from noonday.telemetry.logs import what_is_told
from noonday.testing import FlakyRoad
from tests.simulation import checking, faults, watching
from tests.simulation.jobs import draw_jobs
from tests.simulation.people import People
from tests.simulation.store import SharedStore
from tests.simulation.universe import START, ProcessClock, Universe
from tests.simulation.world import World

MENDED = 15.0  # no fault begins later
CALM = 25.0  # from here on everything has recovered
ENDS = 32.0  # nothing is due later
LONGEST = 300.0
_REST = 9.0  # longer than messages of the dead lie about


def live(seed: int, store: SharedStore) -> World:
    """Everything from one source of chance, so that the same seed is the same world, to the last event."""
    chance = Random(seed)
    store.reset()
    universe = Universe(chance)
    road = FlakyRoad(ProcessClock(universe, 0.0), chance.random, waits=True)
    world = World(seed=seed, store=store, chance=chance, universe=universe, road=road, watch=watching.watch)
    with mock.patch.object(os, "urandom", _drawn(chance)), _logs_in(world):
        gc.disable()  # a tenth of the time, for what is thrown away as a whole
        try:
            _run(world)
        finally:
            universe.close()
            gc.enable()
    return world


def _drawn(chance: Random) -> Callable[[int], bytes]:
    """Ids, tokens and jitter belong to this world; what libraries draw now and then is their own affair."""
    really = os.urandom

    def urandom(size: int) -> bytes:
        asking = str(sys._getframe(1).f_globals.get("__name__"))
        return chance.randbytes(size) if asking.startswith("noonday.") else really(size)

    return urandom


def _run(world: World) -> None:
    chance, universe = world.chance, world.universe
    world.slots = chance.choice([2, 4, 10, 10])
    world.configured = chance.random() < 0.5
    names = [f"node-{number}" for number in range(chance.choice([1, 2, 2, 3]))]
    people = People(world)
    for drawn in draw_jobs(chance, START, START + timedelta(seconds=ENDS)):
        universe.at(0.0, lambda drawn=drawn: people.create(drawn))  # type: ignore[misc]
    for name in names:
        universe.at(chance.uniform(0, 2), lambda name=name: world.start(name))  # type: ignore[misc]
    for _ in range(chance.randint(0, 7)):
        universe.at(chance.uniform(1, MENDED), lambda: faults.strike(world))
    for _ in range(chance.randint(0, 5)):
        universe.at(chance.uniform(1, MENDED), people.act)
    universe.at(MENDED, lambda: faults.mend(world))
    universe.at(MENDED, people.resume_all)
    universe.at(2.5, lambda: _keep_up(world, names))
    universe.run_until(ENDS)
    while _busy(world) and world.time < LONGEST:
        universe.run_until(world.time + 1.0)
    until = world.time + _REST
    while len(world.road) and world.time < until:
        universe.run_until(world.time + 1.0)
    people.check()
    for text in checking.check(world, checking.read(world), CALM):
        world.fail(text)


def _keep_up(world: World, names: list[str]) -> None:
    """Somebody starts again what has ended: after a while, and at once when the faults are over."""
    world.bury()
    for name in names:
        if name not in world.nodes and (world.time > MENDED or world.chance.random() < 0.3):
            world.start(name)
    world.universe.after(0.5, lambda: _keep_up(world, names))


def _busy(world: World) -> bool:
    with world.store.conn.begin():
        return bool(_open(world.store.conn).scalar())


@prepared
def _open(_: Answers) -> Select[Any]:
    waits = (executions.c.wait_reason == WaitReason.DEPENDENCY.value) & executions.c.available_at.is_(None)
    return select(func.count()).select_from(executions).where(OPEN, func.coalesce(~waits, True))


@contextmanager
def _logs_in(world: World) -> Iterator[None]:
    """What the engine says belongs to the trace."""

    def keep(_: object, method: str, event: MutableMapping[str, Any]) -> Any:
        text = event.pop("event", "")
        exc = event.pop("exc_info", None)
        said = " ".join(f"{key}={value}" for key, value in sorted(event.items()))
        world.say(f"    [{method}] {text} {said}" + (f" {exc!r}" if exc else ""))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, what_is_told, keep],
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
