#!lua
-- Store a value. Expired values are evicted; if needed, also those that expire next.
--   KEYS[1] the hash (see cache_find.lua)   ARGV[1] time of a test's clock, or ""   ARGV[2] name   ARGV[3] value
--   ARGV[4] seconds it is good   ARGV[5] most bytes of all values   ARGV[6] most of them
--
-- uses clock: call now

local REMOVED = 100
local order, weight = KEYS[1] .. ":until", KEYS[1] .. ":bytes"

local function remove(name)
  call("DECRBY", weight, call("HSTRLEN", KEYS[1], name))
  call("HDEL", KEYS[1], name)
  call("ZREM", order, name)
end

local value = struct.pack(">dd", now + tonumber(ARGV[4]), now) .. ARGV[3]
remove(ARGV[2])
call("HSET", KEYS[1], ARGV[2], value)
call("ZADD", order, now + tonumber(ARGV[4]), ARGV[2])
call("INCRBY", weight, #value)
call("DEL", KEYS[1] .. ":turn:" .. ARGV[2])

for _, name in ipairs(call("ZRANGEBYSCORE", order, "-inf", now, "LIMIT", 0, REMOVED)) do remove(name) end
while tonumber(call("GET", weight)) > tonumber(ARGV[5]) or call("ZCARD", order) > tonumber(ARGV[6]) do
  remove(call("ZRANGE", order, 0, 0)[1])
end
return 1
