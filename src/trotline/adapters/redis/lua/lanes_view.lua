#!lua flags=no-writes
-- needs: job pace lanes
-- Some of the lanes, as an operator looks at them.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many
--   gives the next cursor, then for each lane its name, the lane as it is kept, and how many tasks wait in it

local page = call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3])
local views = {page[1]}
for i = 1, #page[2], 2 do
  local name, packed = page[2][i], page[2][i + 1]
  views[#views + 1] = name
  views[#views + 1] = packed
  views[#views + 1] = waiting_in(read_lane(name, packed))
end
return views
