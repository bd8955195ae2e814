#!lua
-- End quarantines of a lane.
--   KEYS[1] S resting:LANE     ARGV[2] a member (6 bytes), or "" for all     ARGV[3] the interval per member of the lane
--   returns how many
--
-- uses clock: call
-- uses proxy_ring: proxy_ring
-- uses lane_pool: pool_of
-- uses wake_lane: wake_lane

local RELEASED = 1000
local rules = proxy_ring()

local S, lane = string.match(KEYS[1], "^(trotline:{%d+}:)resting:(.+)$")
local count, last = 0, tonumber(call("HGET", S .. "pool:" .. pool_of(lane), "last") or 0)
local resting = call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")
for i = 1, #resting, 2 do
  local member = rules.unpack_resting(resting[i], tonumber(resting[i + 1]), last)
  if count < RELEASED and member[MEMBER_BANNED_AT] > 0 and (ARGV[2] == "" or member[MEMBER_ID] == ARGV[2]) then
    rules.lift(member, tonumber(ARGV[3]), 0)
    call("ZREM", KEYS[1], resting[i])
    call("RPUSH", S .. "ring:" .. lane, rules.pack(member))
    count = count + 1
  end
end
if count > 0 then
  for _, prefix in ipairs(call("HVALS", S .. "jobs")) do wake_lane(prefix, lane) end
end
return count
