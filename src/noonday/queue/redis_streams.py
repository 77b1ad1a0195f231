"""Redis Streams as the road: one stream per lane, one group, one consumer per instance, ids alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from noonday.domain.job import Lane
from noonday.ports import Delivery, Parcel
from noonday.queue import census, fitness, messages, scripts
from noonday.queue.groups import Groups
from noonday.queue.messages import FIELD, GROUP, PAGE
from noonday.queue.tidying import tidy
from noonday.queue.turns import Turns
from noonday.redis_link import PATIENCE, Argument, Command, RedisLink

log = structlog.get_logger(__name__)


class RedisStreams:
    """The Queue of many instances. `consumer` is the instance's id.

    Pending entries are what the instances have in hands. Nothing here decides that a holder is dead.
    """

    def __init__(self, link: RedisLink, *, prefix: str, consumer: str) -> None:
        self._link = link
        self._consumer = consumer
        self._keys = messages.keys(prefix)
        self._groups = Groups(link, self._keys)
        self._turns = Turns()
        self._cursors = dict.fromkeys(self._keys, "0-0")
        self._first_asked = list(self._keys)

    @property
    def forgotten(self) -> int:
        """How often the groups were gone after they had been there: Redis lost its memory."""
        return self._groups.forgotten

    async def prepare(self) -> None:
        """Make the groups, so that the streams are there from the first moment."""
        await self._groups.prepare()

    async def check(self) -> list[str]:
        """What is doubtful about this Redis as a road. One that is too old is none."""
        found = await fitness.doubts(self._link)
        await self.prepare()
        return found

    async def put(self, parcels: Sequence[Parcel]) -> None:
        for page in messages.pages(parcels):
            named = [(parcel.lane, parcel.execution_id) for parcel in page]
            await self._tell(scripts.PUT, FIELD, messages.texts(named))

    async def take(self, limit: int, wait: timedelta) -> list[Delivery]:
        if limit < 1:
            return []
        share, order = self._turns.owed(limit)
        found = await self._groups.on(partial(self._take_at_once, limit, share, order))
        millis = round(wait.total_seconds() * 1000)
        if not found and millis > 0:
            found = await self._groups.on(partial(self._take_waiting, limit, millis))
        self._turns.served(len(found))
        return found

    async def ack(self, deliveries: Collection[Delivery]) -> None:
        for page in messages.pages(deliveries):
            named = [(delivery.lane, delivery.receipt) for delivery in page]
            await self._tell(scripts.REMOVE, GROUP, messages.texts(named))

    async def hand_back(self, deliveries: Collection[Delivery]) -> None:
        """All in one MULTI: nothing is lost in between. The old message goes first, for on a road that has
        lost its memory the new one may get its number."""
        for page in messages.pages(deliveries):
            anew = [self._add(delivery) for delivery in page]
            await self._link.pipeline([*self._removal(page), *anew], atomic=True)

    async def keep(self, deliveries: Collection[Delivery]) -> None:
        """Claimed by its own holder, a message is young again. One that is not pending is not claimed."""
        for page in messages.pages(deliveries):
            commands: list[Command] = [
                ("XCLAIM", self._keys[lane], GROUP, self._consumer, "0", *receipts, "JUSTID")
                for lane, receipts in messages.receipts(page)
            ]
            await self._groups.on(partial(self._link.pipeline, commands))

    async def abandoned(self, idle: timedelta, limit: int) -> list[Delivery]:
        found: list[Delivery] = []
        self._first_asked.append(self._first_asked.pop(0))
        millis = round(idle.total_seconds() * 1000)
        for lane in self._first_asked:
            if len(found) < limit:
                claim = partial(self._claim_abandoned, lane, millis, limit - len(found))
                found += await self._groups.on(claim)
        return found

    async def mine(self) -> list[Delivery]:
        found: list[Delivery] = []
        for lane in self._keys:
            found += await self._groups.on(partial(self._pending_here, lane))
        return found

    async def missing(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        return await census.missing(self._link, self._keys, parcels)

    async def tidy(self, alive: Collection[str]) -> None:
        await tidy(self._link, self._keys, {*alive, self._consumer})

    async def depths(self) -> Mapping[Lane, int]:
        return await census.depths(self._link, self._keys)

    async def _tell(self, lua: str, word: str, texts: Mapping[Lane, str]) -> None:
        """A script that takes a word, and a text for each lane that has one."""
        await self._link.script(lua, [self._keys[lane] for lane in texts], [word, *texts.values()])

    def _add(self, parcel: Parcel | Delivery) -> Command:
        return ("XADD", self._keys[parcel.lane], "*", FIELD, parcel.execution_id)

    def _removal(self, deliveries: Collection[Delivery]) -> list[Command]:
        return [
            command
            for lane, receipts in messages.receipts(deliveries)
            for command in self._removal_of(lane, receipts)
        ]

    def _removal_of(self, lane: Lane, receipts: Sequence[str]) -> list[Command]:
        key = self._keys[lane]
        return [("XACK", key, GROUP, *receipts), ("XDEL", key, *receipts)]

    async def _take_at_once(self, limit: int, share: int, order: Sequence[Lane]) -> list[Delivery]:
        lanes = list(self._keys)
        asked = [lanes.index(lane) + 1 for lane in order]
        arguments: list[Argument] = [GROUP, self._consumer, FIELD, share, limit, *asked]
        reply = await self._link.script(scripts.TAKE, list(self._keys.values()), arguments)
        if len(reply) > len(lanes) + 1:
            self._groups.lost()
        others: dict[Lane, list[Any]] = {lane: [] for lane in lanes}
        for number, receipt, fields in reply[len(lanes)]:
            others[lanes[number - 1]].append((receipt, fields))
        found: list[Delivery] = []
        for lane, text in zip(lanes, reply, strict=False):
            found += await self._good(lane, *messages.read_text(lane, text))
            found += await self._good(lane, *messages.read(lane, others[lane]))
        return found

    async def _take_waiting(self, limit: int, millis: int) -> list[Delivery]:
        """COUNT holds for each stream; whatever is too much goes back."""
        count = max(1, limit // len(self._keys))
        named = ["STREAMS", *self._keys.values(), *(">" for _ in self._keys)]
        reading: list[Argument] = ["GROUP", GROUP, self._consumer, "COUNT", count, "BLOCK", millis]
        patience = millis / 1000 + PATIENCE
        found = await self._link.call("XREADGROUP", *reading, *named, patience=patience)
        by_key = dict(found or ())
        taken = await self._delivered({lane: by_key.get(key, ()) for lane, key in self._keys.items()})
        if len(taken) > limit:
            await self.hand_back(taken[limit:])
        return taken[:limit]

    async def _claim_abandoned(self, lane: Lane, millis: int, count: int) -> list[Delivery]:
        """Ids alone, and then what they hold: Redis 6.2 does not say which of them are deleted."""
        key = self._keys[lane]
        asked = (
            "XAUTOCLAIM",
            key,
            GROUP,
            self._consumer,
            millis,
            self._cursors[lane],
            "COUNT",
            count,
            "JUSTID",
        )
        reply = await self._link.call(*asked)
        self._cursors[lane] = reply[0]
        held = await self._link.pipeline([("XRANGE", key, receipt, receipt) for receipt in reply[1]])
        entries = [
            (receipt, found[0][1] if found else None) for receipt, found in zip(reply[1], held, strict=True)
        ]
        return await self._delivered({lane: entries})

    async def _pending_here(self, lane: Lane) -> list[Delivery]:
        found: list[Delivery] = []
        reading: list[Argument] = ["GROUP", GROUP, self._consumer, "COUNT", PAGE]
        start = "0"
        while True:
            reply = await self._link.call("XREADGROUP", *reading, "STREAMS", self._keys[lane], start)
            entries = reply[0][1] if reply else []
            found += await self._delivered({lane: entries})
            if len(entries) < PAGE:
                return found
            start = entries[-1][0]

    async def _delivered(self, entries: Mapping[Lane, Sequence[Any]]) -> list[Delivery]:
        """High lanes first."""
        found: list[Delivery] = []
        for lane, members in entries.items():
            found += await self._good(lane, *messages.read(lane, members))
        return found

    async def _good(self, lane: Lane, good: list[Delivery], bad: Sequence[str]) -> list[Delivery]:
        """What names no execution is removed here and harms nobody."""
        if bad:
            await self._link.pipeline(self._removal_of(lane, bad))
            log.warning(
                "messages without an execution were removed from the road",
                action="streams",
                stream=self._keys[lane],
                count=len(bad),
                first=bad[0],
            )
        return good
