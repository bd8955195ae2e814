#!lua flags=no-writes
-- needs: job other_jobs pace sharing shared lanes levels viewing
-- Some of the lanes in which tasks wait.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many     gives the next cursor, then viewing.lua

local page = call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3])
local names, own = {}, {}
for i = 1, #page[2], 2 do
  names[#names + 1], own[#own + 1] = page[2][i], page[2][i + 1]
end
return view_of({page[1]}, names, own)
