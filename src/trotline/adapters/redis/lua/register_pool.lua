#!lua
-- Members of a proxy pool are added and removed, some at a time; the last call names the version.
--   KEYS[1] S pool:POOL     ARGV[2] version     ARGV[3] rules (PoolRules, packed)     ARGV[4] 1 if this is the last call
--   ARGV[5] how many are removed, then those (6 bytes each), then for each that is added the member and its weight (0 to 255)
--   gives 1, or 0 if a newer version is in force
--
-- helpers/proxy_pools.lua has the map of the keys.
--
-- uses clock: call
-- uses wake_lane: wake_lane

local WOKEN, MOST_REMOVED = 1000, 50000

local S, pool = string.match(KEYS[1], "^(trotline:{%d+}:)pool:(.+)$")
local version, last, alike = unpack(call("HMGET", KEYS[1], "version", "last", "alike"), 1, 3)
if version and tonumber(version) > tonumber(ARGV[2]) then return 0 end
last = tonumber(last or 0)
local removed = tonumber(ARGV[5])
local has_sessions = string.sub(pool, 1, 1) == ACCOUNTS
-- Once false it stays so: some ring may still have a member that was removed.
local are_alike = removed == 0 and (alike == "1" or last == 0)
for i = 6, 5 + removed do
  local known = call("HGET", S .. "pools:" .. pool, ARGV[i])
  if known then call("HSET", S .. "removed:" .. pool, ARGV[i], known) end
  call("HDEL", S .. "pools:" .. pool, ARGV[i])
  call("HDEL", S .. "faults:" .. pool, ARGV[i])
  if has_sessions then call("HDEL", S .. "sessions:" .. pool, ARGV[i]) end
end
-- Number of a block -> the members with its numbers, each with its number.
local blocks = {}
local function deal_last(id)
  local place = (last - 1) % DEALT_TOGETHER
  local block = struct.pack("<I4", (last - 1 - place) / DEALT_TOGETHER)
  local fronts = blocks[block] or call("HGET", S .. "dealing:" .. pool, block) or ""
  -- A block may have been deleted when all its members were.
  blocks[block] = fronts .. string.rep("\0", place * MEMBER_NAME - #fronts) .. id .. struct.pack("<I4", last)
end

for i = 6 + removed, #ARGV, 2 do
  local known = call("HGET", S .. "pools:" .. pool, ARGV[i]) or call("HGET", S .. "removed:" .. pool, ARGV[i])
  are_alike = are_alike and tonumber(ARGV[i + 1]) == MOST_WEIGHT
  local number = known and struct.unpack(KNOWN_FORM, known)
  if not number then
    last = last + 1
    number = last
    deal_last(ARGV[i])
  end
  call("ZADD", S .. "added:" .. pool, number, ARGV[i])
  call("HDEL", S .. "removed:" .. pool, ARGV[i])
  call("HSET", S .. "pools:" .. pool, ARGV[i], struct.pack(KNOWN_FORM, number, tonumber(ARGV[i + 1])))
end
for block, fronts in pairs(blocks) do call("HSET", S .. "dealing:" .. pool, block, fronts) end
call("HSET", KEYS[1], "rules", ARGV[3], "last", last, "alike", are_alike and "1" or "0")
if ARGV[4] ~= "1" then return 1 end
call("HSET", KEYS[1], "version", ARGV[2])
call("HSET", S .. "registered", pool, ARGV[2])
call("HINCRBY", KEYS[1], "changes", 1)
-- Lists of addresses that are new every day must not fill the memory.
if call("HLEN", S .. "removed:" .. pool) > MOST_REMOVED then
  local _, old = unpack(call("HSCAN", S .. "removed:" .. pool, 0, "COUNT", WOKEN), 1, 2)
  for i = 1, math.min(#old, 2 * WOKEN), 2 do
    call("HDEL", S .. "removed:" .. pool, old[i])
    call("ZREM", S .. "added:" .. pool, old[i])
    local before = struct.unpack(KNOWN_FORM, old[i + 1]) - 1
    local first = before - before % DEALT_TOGETHER
    if call("ZCOUNT", S .. "added:" .. pool, first + 1, first + DEALT_TOGETHER) == 0 then
      call("HDEL", S .. "dealing:" .. pool, struct.pack("<I4", first / DEALT_TOGETHER))
    end
    call("HDEL", S .. "load:" .. pool, old[i])
    call("HDEL", S .. "locks:" .. pool, old[i])
  end
end
-- The lanes that wait for a member of this pool are looked at; those beyond the limit are by themselves, a little later.
local wanting = call("HGETALL", S .. "wanting:" .. pool)
call("DEL", S .. "wanting:" .. pool)
for i = 1, math.min(#wanting, 2 * WOKEN), 2 do
  for prefix in string.gmatch(wanting[i + 1], "%S+") do wake_lane(prefix, wanting[i]) end
end
return 1
