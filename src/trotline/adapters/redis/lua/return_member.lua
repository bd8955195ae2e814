#!lua
-- The job of a lease is deleted: the member that it went out through goes back to its lane's ring. Its worker may still
-- send, so an account rests like one of a silent worker.
--   KEYS[1] P held:W     ARGV[2] token (6 bytes)
--
-- uses clock: call now
-- uses lane_pool: pool_of

local S = string.match(KEYS[1], "^trotline:{%d+}:")
local parcel = call("HGET", KEYS[1], ARGV[2])
if not parcel then return 0 end
local _, lane = struct.unpack(PARCEL_FORM, parcel)
local pool, member = pool_of(lane), string.sub(parcel, -MEMBER_BYTES)
if not pool then return 0 end
local id = string.sub(member, 1, MEMBER_ID_BYTES)
local rules, load = call("HGET", S .. "pool:" .. pool, "rules"), call("HGET", S .. "load:" .. pool, id)
call("HDEL", KEYS[1], ARGV[2])
call("LPUSH", S .. "ring:" .. lane, member)
if rules and load and #rules >= RULES_BYTES and #load >= LOAD_BYTES then
  local rest = ({struct.unpack(RULES_FORM, rules)})[RULE_REST_OF_DEAD]
  local next_start, visits, starts, since = struct.unpack(LOAD_FORM, load)
  if rest > 0 then next_start = math.max(next_start, now + rest) end
  call("HSET", S .. "load:" .. pool, id, struct.pack(LOAD_FORM, next_start, math.max(0, visits - 1), starts, since))
end
return 1
