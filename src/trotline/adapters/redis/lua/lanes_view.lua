#!lua flags=no-writes
-- needs: job other_jobs pace sharing shared lanes levels lines
-- Some of the lanes, as an operator looks at them.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many
--   gives the next cursor, then for each lane its name, its own string, its state, this job's visits there, its interval and until when it
--   rests (as text), why, and how many tasks wait in it

local page = call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3])
local views, names, own = {page[1]}, {}, {}
for i = 1, #page[2], 2 do
  names[#names + 1], own[#own + 1] = page[2][i], page[2][i + 1]
end
local shared = fetch(SHARED, names)
for i = 1, #names do
  local lane = read_lane(names[i], own[i], shared[i])
  local mine = lane[MINE]
  for _, value in ipairs({
    names[i], own[i], lane[STATE], mine > 0 and lane[CLAIMS][mine + RUNS] or 0, string.format("%.17g", lane[INTERVAL]),
    string.format("%.17g", lane[REST]), lane[WHY], waiting_in(lane),
  }) do
    views[#views + 1] = value
  end
end
return views
