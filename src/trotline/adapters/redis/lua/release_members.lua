#!lua
-- End quarantines of a lane.
--   KEYS[1] S resting:LANE     ARGV[2] a member (6 bytes), or "" for all     gives how many
--
-- uses clock: call now
-- uses proxy_ring: pack_member unpack_member lifted

local RELEASED = 1000

local S, lane = string.match(KEYS[1], "^(trotline:{%d+}:)resting:(.+)$")
local count = 0
for _, packed in ipairs(call("ZRANGE", KEYS[1], 0, -1)) do
  local member = unpack_member(packed)
  if count < RELEASED and member[MEMBER_BANNED_AT] > 0 and (ARGV[2] == "" or member[MEMBER_ID] == ARGV[2]) then
    lifted(member)
    call("ZREM", KEYS[1], packed)
    call("RPUSH", S .. "ring:" .. lane, pack_member(member))
    count = count + 1
  end
end
return count
