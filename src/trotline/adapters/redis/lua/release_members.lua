#!lua
-- End quarantines of a lane.
--   KEYS[1] S resting:LANE     ARGV[2] a member (6 bytes), or "" for all     ARGV[3] the interval per member of the lane
--   returns how many
--
-- uses clock: call
-- uses proxy_ring: proxy_ring
-- uses wake_lane: wake_lane

local RELEASED = 1000
local rules = proxy_ring()

local S, lane = string.match(KEYS[1], "^(trotline:{%d+}:)resting:(.+)$")
local count = 0
for _, packed in ipairs(call("ZRANGE", KEYS[1], 0, -1)) do
  local member = rules.unpack(packed)
  if count < RELEASED and member[MEMBER_BANNED_AT] > 0 and (ARGV[2] == "" or member[MEMBER_ID] == ARGV[2]) then
    rules.lift(member, tonumber(ARGV[3]), 0)
    call("ZREM", KEYS[1], packed)
    call("RPUSH", S .. "ring:" .. lane, rules.pack(member))
    count = count + 1
  end
end
if count > 0 then
  for _, prefix in ipairs(call("HVALS", S .. "jobs")) do wake_lane(prefix, lane) end
end
return count
