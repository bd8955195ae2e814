#!lua flags=no-writes
-- Some of the lanes in which tasks wait.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many     gives the next cursor, then lane_view.lua
--
-- uses clock: call
-- uses lanes: LANES
-- uses lane_view: view_of

local page = call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3])
local names, own = {}, {}
for i = 1, #page[2], 2 do
  names[#names + 1], own[#own + 1] = page[2][i], page[2][i + 1]
end
return view_of({page[1]}, names, own)
