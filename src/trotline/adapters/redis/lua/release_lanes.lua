#!lua flags=allow-oom
-- The job is deleted: release its places in these lanes, and remove its bounds.
--   KEYS[1] P job     ARGV[2...] names of lanes
--
-- uses lane_sharing: drop_claim
-- uses shared_lanes: change wake_others
-- uses job_lanes: lanes load_lanes
-- uses ready_lanes: write_lanes

local names = {}
for i = 2, #ARGV do names[i - 1] = ARGV[i] end
load_lanes(names)
for i = 1, #names do
  local lane = lanes[names[i]]
  if lane[MINE] > 0 then
    drop_claim(lane, lane[MINE])
    change(lane)
    wake_others(lane, true)
  end
end
write_lanes(true)
return #names
