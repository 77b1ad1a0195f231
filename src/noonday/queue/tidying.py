"""Keeps the streams small: consumers that are gone, and messages that are done with but were not deleted."""

from __future__ import annotations

from collections.abc import Collection

from noonday.queue.census import facts, no_such_road
from noonday.queue.messages import GROUP, Keys
from noonday.redis_link import RedisLink, Refused

_SILENT_MILLIS = 60_000

# Deleting a consumer drops what it holds, so that it is looked at again in the same breath.
_DROP_CONSUMERS = """
local dropped = 0
for i = 2, #ARGV do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[i]) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[i])
    dropped = dropped + 1
  end
end
return dropped
"""

# The oldest open message is the oldest pending one, or else the first that was not delivered. Without either
# all that lies there is done with; the trim wants a message to stop at, so the last one goes by itself.
_TRIM = """
local key, group = KEYS[1], ARGV[1]
local first = redis.call('XPENDING', key, group, '-', '+', 1)[1]
if first then
  return redis.call('XTRIM', key, 'MINID', first[1])
end
local delivered
for _, facts in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local named = {}
  for i = 1, #facts, 2 do named[facts[i]] = facts[i + 1] end
  if named['name'] == group then delivered = named['last-delivered-id'] end
end
local waiting = redis.call('XRANGE', key, '(' .. delivered, '+', 'COUNT', 1)[1]
if waiting then
  return redis.call('XTRIM', key, 'MINID', waiting[1])
end
local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
if not last then
  return 0
end
return redis.call('XTRIM', key, 'MINID', last[1]) + redis.call('XDEL', key, last[1])
"""


async def tidy(link: RedisLink, keys: Keys, alive: Collection[str]) -> None:
    for key in keys.values():
        try:
            await _tidy(link, key, alive)
        except Refused as exc:
            if not no_such_road(exc):
                raise


async def _tidy(link: RedisLink, key: str, alive: Collection[str]) -> None:
    consumers = map(facts, await link.call("XINFO", "CONSUMERS", key, GROUP))
    gone = [
        one["name"]
        for one in consumers
        if one["name"] not in alive and not one["pending"] and one["idle"] > _SILENT_MILLIS
    ]
    if gone:
        await link.script(_DROP_CONSUMERS, [key], [GROUP, *gone])
    await link.script(_TRIM, [key], [GROUP])
