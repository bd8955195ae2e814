#!lua flags=no-writes
-- How many tasks wait in those levels of a lane for which the lane itself has no room (see lanes.lua), some at a time.
--   KEYS[1] P job     ARGV[2] lane     ARGV[3] 0 for even levels, 1 for odd ones     ARGV[4] first     ARGV[5] how many
--   gives how many levels were counted, and how many tasks wait there
--
-- uses clock: call
-- uses job: P

local lane, waiting = ARGV[2], 0
local levels = call("ZRANGE", P .. "m:" .. ARGV[3] .. ":" .. lane, ARGV[4], ARGV[4] + ARGV[5] - 1)
for i = 1, #levels do waiting = waiting + call("LLEN", P .. "q:" .. lane .. ":" .. levels[i]) end
return {#levels, waiting}
