#!lua flags=no-writes
-- Lanes in which a worker has visits, and no task waits: they are not in P lanes.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] cursor     ARGV[4] about how many     returns the next cursor, then lane_view.lua
--
-- uses clock: call
-- uses job_counters: unpack_ P
-- uses job_lanes: LANES
-- uses lane_view: view_of

local cursor, flat = unpack(call("HSCAN", P .. "held:" .. ARGV[2], ARGV[3], "COUNT", ARGV[4]), 1, 2)
local names, asked = {}, {}
for i = 2, #flat, 2 do
  local _, name = unpack_(PARCEL_FORM, flat[i])
  if not asked[name] and call("HEXISTS", LANES, name) == 0 then
    asked[name] = true
    names[#names + 1] = name
  end
end
return view_of({cursor}, names, {})
