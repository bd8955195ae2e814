#!lua flags=no-writes
-- The number of waiting tasks in levels that do not fit into the packed lane (see job_lanes.lua), in pages.
--   KEYS[1] P job     ARGV[2] lane     ARGV[3] 0 for even levels, 1 for odd ones     ARGV[4] first     ARGV[5] how many
--   returns the number of levels counted, and of tasks
--
-- uses clock: call
-- uses job_counters: P

local lane, waiting = ARGV[2], 0
local levels = call("ZRANGE", P .. "m:" .. ARGV[3] .. ":" .. lane, ARGV[4], ARGV[4] + ARGV[5] - 1)
for i = 1, #levels do waiting = waiting + call("LLEN", P .. "q:" .. lane .. ":" .. levels[i]) end
return {#levels, waiting}
