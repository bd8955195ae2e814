#!lua flags=no-writes
-- A page of the lanes with waiting tasks.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many     returns the next cursor, then lane_view.lua
--
-- uses clock: call
-- uses job_lanes: LANES
-- uses lane_view: view_of

local cursor, flat = unpack(call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3]), 1, 2)
local names, own = {}, {}
for i = 1, #flat, 2 do
  names[#names + 1], own[#own + 1] = flat[i], flat[i + 1]
end
return view_of({cursor}, names, own)
