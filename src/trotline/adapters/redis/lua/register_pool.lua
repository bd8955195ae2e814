#!lua
-- Members of a proxy pool are added and removed, some at a time; the last call names the version.
--   KEYS[1] S pool:POOL     ARGV[1] version     ARGV[2] rules (PoolRules, packed)     ARGV[3] 1 if this is the last call
--   ARGV[4] how many are removed, then those (6 bytes each), then for each that is added the member and its weight (0 to 255)
--   gives 1, or 0 if a newer version is in force
--
-- helpers/pool_members.lua has the map of the keys.

local call = redis.call
local S, pool = string.match(KEYS[1], "^(trotline:{%d+}:)pool:(.+)$")
local version, last = unpack(call("HMGET", KEYS[1], "version", "last"), 1, 2)
if version and tonumber(version) > tonumber(ARGV[1]) then return 0 end
last = tonumber(last or 0)
local removed = tonumber(ARGV[4])
for i = 5, 4 + removed do
  call("HDEL", S .. "pools:" .. pool, ARGV[i])
  call("ZREM", S .. "added:" .. pool, ARGV[i])
  call("HDEL", S .. "faults:" .. pool, ARGV[i])
end
for i = 5 + removed, #ARGV, 2 do
  local known = call("HGET", S .. "pools:" .. pool, ARGV[i])
  local number = known and struct.unpack(KNOWN_FORM, known)
  if not number then
    last = last + 1
    number = last
    call("ZADD", S .. "added:" .. pool, number, ARGV[i])
  end
  call("HSET", S .. "pools:" .. pool, ARGV[i], struct.pack(KNOWN_FORM, number, tonumber(ARGV[i + 1])))
end
call("HSET", KEYS[1], "rules", ARGV[2], "last", last)
if ARGV[3] == "1" then call("HSET", KEYS[1], "version", ARGV[1]) end
return 1
