"""What the hot path asks of the streams, in Lua: many messages in one call, their names in one text.

To pack an argument or to read one of a reply costs the client more than the message costs the server, so
names travel as one text per lane with blanks between them.
"""

from __future__ import annotations

from typing import Final

# One breath: whoever waits for a message wakes to all of them. A lane that refuses harms itself alone.
PUT: Final = """
local trouble
for lane = 1, #KEYS do
  for id in string.gmatch(ARGV[lane + 1], '%S+') do
    local done = redis.pcall('XADD', KEYS[lane], '*', ARGV[1], id)
    if type(done) == 'table' and done.err then
      trouble = done
      break
    end
  end
end
return trouble or 'OK'
"""

# All lanes in one round trip, each asked for what is still wanted: first the share of the lower ones, then
# strictly by priority. A lane that lost its group does not hide what the others gave. The answer is a text of
# receipts and ids for each lane, then the messages that do not fit into one, then the trouble, if any.
TAKE: Final = """
local field, share, limit = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local plain, other, trouble, count = {}, {}, nil, 0
for lane = 1, #KEYS do plain[lane] = {} end
local function ask(lane, wanted)
  if wanted < 1 then return end
  local group, me = ARGV[1], ARGV[2]
  local got = redis.pcall('XREADGROUP', 'GROUP', group, me, 'COUNT', wanted, 'STREAMS', KEYS[lane], '>')
  if got and got.err then
    trouble = got.err
  elseif got then
    local found = plain[lane]
    for _, entry in ipairs(got[1][2]) do
      local fields = entry[2]
      count = count + 1
      if #fields == 2 and fields[1] == field and not string.find(fields[2], '[^%w-]') then
        found[#found + 1] = entry[1]
        found[#found + 1] = fields[2]
      else
        other[#other + 1] = {lane, entry[1], fields}
      end
    end
  end
end
for i = 6, #ARGV do ask(tonumber(ARGV[i]), share - count) end
for lane = 1, #KEYS do ask(lane, limit - count) end
if trouble and count == 0 then return redis.error_reply(trouble) end
local reply = {}
for lane = 1, #KEYS do reply[lane] = table.concat(plain[lane], ' ') end
reply[#KEYS + 1] = other
reply[#KEYS + 2] = trouble
return reply
"""

# Done with: out of the hands of the group, and off the stream.
REMOVE: Final = """
for lane = 1, #KEYS do
  local receipts = {}
  for receipt in string.gmatch(ARGV[lane + 1], '%S+') do receipts[#receipts + 1] = receipt end
  if #receipts > 0 then
    redis.call('XACK', KEYS[lane], ARGV[1], unpack(receipts))
    redis.call('XDEL', KEYS[lane], unpack(receipts))
  end
end
return 'OK'
"""

# A part of a stream: all receipts in one text, and all that they name in another, word for word. What is no
# name of ours stands there as a dash.
LIST: Final = """
local receipts, names = {}, {}
for at, entry in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])) do
  local name = entry[2][2]
  receipts[at] = entry[1]
  names[at] = string.find(name, '^[%w-]+$') and name or '-'
end
return {table.concat(receipts, ' '), table.concat(names, ' ')}
"""
