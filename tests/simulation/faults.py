"""Misfortunes by chance: which, when, to whom, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from noonday.store import instances
from noonday.testing import Faults
from tests.simulation.store import Deed, StoreFaults, Trap
from tests.simulation.world import Node, World

Fault = Callable[[World], None]

_PATIENCE = 7.0  # seconds that a process may take to end before it is killed


def strike(world: World) -> None:
    world.bury()
    world.chance.choice(FAULTS)(world)


def mend(world: World) -> None:
    """From here on nothing goes wrong any more, except what the jobs do themselves."""
    world.say("the faults are over")
    world.mended = True
    world.road.behave()
    world.deaf_until = 0.0
    for node in world.nodes.values():
        node.db.faults, node.db.trap = StoreFaults(), None
        world.thaw(node.name)


def _victim(world: World) -> Node | None:
    return world.chance.choice(list(world.nodes.values())) if world.nodes else None


def _kill(world: World) -> None:
    if (node := _victim(world)) is not None:
        world.kill(node.name)


def _kill_all(world: World) -> None:
    for name in list(world.nodes):
        world.kill(name)


def _end(world: World) -> None:
    """In order, as for an update."""
    if (node := _victim(world)) is not None:
        world.say(f"{node.name} is asked to end")
        node.stop.set()
        world.universe.after(_PATIENCE, lambda: world.kill(node.name, node))


def _freeze(world: World) -> None:
    if (node := _victim(world)) is not None:
        world.freeze(node.name, world.chance.choice([0.5, 2.0, 5.0, 9.0]))


def _drain(world: World) -> None:
    if (node := _victim(world)) is None:
        return
    own_id = node.engine.config.instance_id

    def want(state: str) -> None:
        world.say(f"{node.name} is wanted {state}")
        world.desk.commit(partial(instances.want, ids=[own_id], state=state))

    want(instances.DRAINING)
    world.universe.after(world.chance.uniform(1, 5), lambda: want(instances.RUNNING))


def _road_down(world: World) -> None:
    node = _victim(world)
    whom = () if node is None or world.chance.random() < 0.5 else (node.engine.config.instance_id,)
    world.road.down(*whom)
    world.say(f"the road is down for {whom or 'all'}")

    def back() -> None:
        world.road.up(*whom)
        world.say(f"the road is up for {whom or 'all'}")

    world.universe.after(world.chance.choice([0.3, 2.0, 6.0]), back)


def _road_flushed(world: World) -> None:
    world.road.flush()
    world.say("the road forgets everything")


def _road_flaky(world: World) -> None:
    chance = world.chance
    world.road.faults = Faults(
        lose=chance.choice([0.0, 0.3]),
        double=chance.choice([0.0, 0.3]),
        late=timedelta(seconds=chance.choice([0.0, 0.0, 2.0])),
        lose_acks=chance.choice([0.0, 0.3]),
        lose_answers=chance.choice([0.0, 0.2]),
    )
    world.say(f"the road is flaky: {world.road.faults}")


def _road_good(world: World) -> None:
    world.road.behave()
    world.say("the road is good")


def _store_away(world: World) -> None:
    """For one, or for all."""
    until = world.time + world.chance.choice([0.2, 3.0, 5.0])
    hangs = world.chance.random() < 0.3
    node = _victim(world)
    whom = [node] if node is not None and world.chance.random() < 0.6 else list(world.nodes.values())
    for one in whom:
        one.db.faults.away_until, one.db.faults.hangs = until, hangs
    names = [one.name for one in whom]
    world.say(f"the store {'hangs' if hangs else 'is away'} until {until:.3f} for {names}")


def _store_flaky(world: World) -> None:
    if (node := _victim(world)) is None:
        return
    chance = world.chance
    node.db.faults = StoreFaults(
        slow=chance.choice([0.0, 0.02, 0.3]),
        refuse=chance.choice([0.0, 0.2]),
        forget=chance.choice([0.0, 0.2]),
        die_before=chance.choice([0.0, 0.0, 0.03]),
        die_after=chance.choice([0.0, 0.0, 0.03]),
        stop_before=chance.choice([0.0, 0.05]),
        stop_after=chance.choice([0.0, 0.05]),
    )
    world.say(f"{node.name} has an unsafe way to the store: {node.db.faults}")


def _trap(world: World) -> None:
    if (node := _victim(world)) is None:
        return
    chance = world.chance
    deed: Deed = chance.choice(["kill", "stop", "stop"])
    node.db.trap = trap = Trap(chance.randint(0, 12), deed, chance.random() < 0.5)
    world.say(f"{node.name} walks into a trap: {trap}")


def _deaf(world: World) -> None:
    world.deaf_until = world.time + world.chance.uniform(1, 5)
    world.say(f"nobody hears of the others until {world.deaf_until:.3f}")


FAULTS: tuple[Fault, ...] = (
    _kill,
    _kill,
    _kill_all,
    _end,
    _freeze,
    _freeze,
    _freeze,
    _drain,
    _road_down,
    _road_flushed,
    _road_flaky,
    _road_flaky,
    _road_good,
    _store_away,
    _store_away,
    _store_flaky,
    _store_flaky,
    _trap,
    _trap,
    _trap,
    _trap,
    _deaf,
)
