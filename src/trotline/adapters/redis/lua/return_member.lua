#!lua
-- The job of a lease is deleted: the member that it went out through goes back to its lane's ring. Its worker may still
-- send, so an account rests like one of a silent worker.
--   KEYS[1] P out:W     ARGV[2] token (6 bytes)     ARGV[3] lane
--
-- uses clock: call now
-- uses lane_pool: pool_of

local S = string.match(KEYS[1], "^trotline:{%d+}:")
local member, pool = call("HGET", KEYS[1], ARGV[2]), pool_of(ARGV[3])
if not member or not pool then return 0 end
local id = string.sub(member, 1, 6)
local rules, load = call("HGET", S .. "pool:" .. pool, "rules"), call("HGET", S .. "load:" .. pool, id)
call("HDEL", KEYS[1], ARGV[2])
call("LPUSH", S .. "ring:" .. ARGV[3], member)
if rules and load and #rules >= RULES_BYTES and #load >= LOAD_BYTES then
  local rest = ({struct.unpack(RULES_FORM, rules)})[RULE_REST_OF_DEAD]
  local next_start, visits, starts, since = struct.unpack(LOAD_FORM, load)
  if rest > 0 then next_start = math.max(next_start, now + rest) end
  call("HSET", S .. "load:" .. pool, id, struct.pack(LOAD_FORM, next_start, math.max(0, visits - 1), starts, since))
end
return 1
