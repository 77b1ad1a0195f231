"""The road against a list in memory: nothing is taken twice, missed or cleared wrongly, whatever is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from noonday.domain.job import Lane
from noonday.ports import Delivery, Parcel
from noonday.redis_link import RedisLink
from tests.queue.roads import NOW, Road, an_id

NAMES = st.sampled_from(["one", "two"])
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Told:
    """A message as the model has it. `holder` is None while it waits; done = acknowledged, not deleted."""

    lane: Lane
    execution_id: str
    holder: str | None = None
    receipt: str = ""
    done: bool = False


class Patient(RedisLink):
    """The model says what the server answers, not how soon a busy machine lets it."""

    async def call(self, *arguments: Any, patience: float = 0.0) -> Any:
        return await super().call(*arguments, patience=60.0)


class RoadMachine(RuleBasedStateMachine):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.road = Road(self.run(self.link(url)))
        self.instances = {name: self.road.instance(name) for name in ("one", "two")}
        self.messages: list[Told] = []
        self.stale: list[Delivery] = []
        self.grouped = dict.fromkeys(Lane, False)
        self.sent: list[Parcel] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def link(self, url: str) -> RedisLink:
        return Patient(url)

    def teardown(self) -> None:
        self.run(self.road.forget())
        self.run(self.road.link.close())
        self.runner.close()

    @rule(lanes=st.lists(st.sampled_from(Lane), max_size=6))
    def put(self, lanes: list[Lane]) -> None:
        parcels = [Parcel(lane, an_id()) for lane in lanes]
        self.run(self.instances["one"].put(parcels))
        self.sent += parcels
        self.messages += [Told(parcel.lane, parcel.execution_id) for parcel in parcels]

    @rule(name=NAMES, limit=st.integers(1, 9))
    def take(self, name: str, limit: int) -> None:
        self.made_anew(name)
        waiting = [told for told in self.messages if told.holder is None and not told.done]
        taken = self.run(self.instances[name].take(limit, NOW))
        assert len(taken) == min(limit, len(waiting))
        for delivery in taken:
            told = next(one for one in waiting if one.execution_id == delivery.execution_id)
            waiting.remove(told)
            assert told.lane is delivery.lane
            told.holder, told.receipt = name, delivery.receipt

    @rule(name=NAMES, pick=st.randoms(use_true_random=False))
    def ack(self, name: str, pick: Any) -> None:
        chosen = [told for told in self.held() if pick.random() < 0.4]
        self.run(self.instances[name].ack([*map(delivery, chosen), *self.stale]))
        self.drop([*chosen, *self.known_again()])
        self.stale = []

    @rule(pick=st.randoms(use_true_random=False))
    def ack_cut_in_half(self, pick: Any) -> None:
        for told in self.held():
            if pick.random() < 0.3:
                self.run(self.road.link.call("XACK", self.road.keys[told.lane], "scheduler", told.receipt))
                told.holder, told.done = None, True

    @rule(name=NAMES, pick=st.randoms(use_true_random=False))
    def hand_back(self, name: str, pick: Any) -> None:
        chosen = [told for told in self.held() if pick.random() < 0.5]
        self.run(self.instances[name].hand_back([*map(delivery, chosen), *self.stale]))
        self.drop([*chosen, *self.known_again()])
        self.messages += [Told(old.lane, old.execution_id) for old in chosen]
        self.messages += [Told(old.lane, old.execution_id) for old in self.stale]
        self.stale = []

    @rule(name=NAMES)
    def keep(self, name: str) -> None:
        self.made_anew(name)
        held = self.held()
        self.run(self.instances[name].keep([*map(delivery, held), *self.stale]))
        for told in held:
            told.holder = name

    @rule(name=NAMES, limit=st.integers(1, 9))
    def abandoned(self, name: str, limit: int) -> None:
        self.made_anew(name)
        found = self.run(self.instances[name].abandoned(NOW, limit))
        assert len(found) <= limit
        by_receipt = {(told.lane, told.receipt): told for told in self.held()}
        for one in found:
            told = by_receipt[one.lane, one.receipt]
            assert told.execution_id == one.execution_id
            told.holder = name

    @rule(name=NAMES)
    def mine(self, name: str) -> None:
        self.made_anew(name)
        found = self.run(self.instances[name].mine())
        expected = {told.receipt for told in self.held() if told.holder == name}
        assert {one.receipt for one in found} == expected

    @rule(name=NAMES, alive=st.sets(NAMES))
    def tidy(self, name: str, alive: set[str]) -> None:
        self.run(self.instances[name].tidy(alive))
        for lane in Lane:
            own = [told for told in self.messages if told.lane is lane]
            first_open = next((n for n, told in enumerate(own) if not told.done), len(own))
            if self.grouped[lane]:
                self.drop(own[:first_open])

    @rule()
    def flush(self) -> None:
        self.run(self.road.forget())
        self.stale += map(delivery, self.held())
        self.messages = []
        self.grouped = dict.fromkeys(Lane, False)

    @rule(lane=st.sampled_from(Lane))
    def lose_a_group(self, lane: Lane) -> None:
        if self.grouped[lane]:
            self.run(self.road.link.call("XGROUP", "DESTROY", self.road.keys[lane], "scheduler"))
            self.grouped[lane] = False
            for told in self.messages:
                if told.lane is lane:  # from the beginning on, once it is made anew
                    if told.holder is not None:
                        self.stale.append(delivery(told))
                    told.holder, told.done = None, False

    @invariant()
    def the_same_are_missing(self) -> None:
        present = {told.execution_id for told in self.messages if not told.done and self.grouped[told.lane]}
        gone = self.run(self.instances["two"].missing(self.sent))
        assert gone == [parcel for parcel in self.sent if parcel.execution_id not in present]

    @invariant()
    def nothing_open_was_cleared(self) -> None:
        depths = self.run(self.instances["one"].depths())
        for lane in Lane:
            assert depths[lane] == sum(told.lane is lane for told in self.messages)

    def made_anew(self, name: str) -> None:
        """Every verb that needs the groups makes them; the model lets a person do so before."""
        self.run(self.instances[name].prepare())
        self.grouped = dict.fromkeys(Lane, True)

    def known_again(self) -> list[Told]:
        """Messages that outlived their group: their old receipts are good for them."""
        receipts = {(old.lane, old.receipt) for old in self.stale}
        return [told for told in self.messages if (told.lane, told.receipt) in receipts]

    def held(self) -> list[Told]:
        return [told for told in self.messages if told.holder is not None]

    def drop(self, chosen: list[Told]) -> None:
        self.messages = [told for told in self.messages if told not in chosen]


def delivery(told: Told) -> Delivery:
    return Delivery(told.lane, told.execution_id, told.receipt)  # type: ignore[arg-type] # an id of our own


def test_it_agrees_with_a_list_in_memory(server_url: str) -> None:
    class Machine(RoadMachine):
        def __init__(self) -> None:
            super().__init__(server_url)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
