#!lua flags=no-writes
-- Lanes of which tasks only wait in the lists of chains: they are not in P lanes.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many     returns the next cursor, then lane_view.lua
--
-- uses clock: call
-- uses job_counters: P
-- uses job_lanes: LANES
-- uses lane_view: view_of

local cursor, flat = unpack(call("HSCAN", P .. "chained", ARGV[2], "COUNT", ARGV[3]), 1, 2)
local names = {}
for i = 1, #flat, 2 do
  if call("HEXISTS", LANES, flat[i]) == 0 then names[#names + 1] = flat[i] end
end
return view_of({cursor}, names, {})
