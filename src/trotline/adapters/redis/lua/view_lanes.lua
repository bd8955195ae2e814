#!lua flags=no-writes
-- Lanes by their names; also those that the job has no task in.
--   KEYS[1] P job     ARGV[2] and after: the lanes     returns lane_view.lua
--
-- uses job_lanes: LANES fetch
-- uses lane_view: view_of

local names = {}
for i = 2, #ARGV do names[#names + 1] = ARGV[i] end
return view_of({}, names, fetch(LANES, names))
