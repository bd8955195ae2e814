#!lua flags=allow-oom
-- After the end of a job: delete lanes without learned state that are not in use. They are created again if needed.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many
--   returns the next cursor
--
-- uses clock: call now
-- uses job_counters: P book many
-- uses other_jobs: this_job
-- uses pace: failing
-- uses lane_sharing: let_go
-- uses shared_lanes: SHARED
-- uses job_lanes: read_lane

local function is_plain(lane)
  return lane[LEASED] == 0 and #lane[CLAIMS] == 0 and not lane[ORDERED] and lane[FAILURES] == 0 and lane[RESTS] == 0
    and lane[NEXT] <= now and lane[REST] <= now and lane[LIMIT] == 0 and lane[ASKED] == 0
    and lane[INTERVAL] == lane[FLOOR] and not failing(lane)
end

this_job.over = book.state == "cancelled" or (book.sealed and book.waiting + book.leased == 0)
local cursor, flat = unpack(call("HSCAN", SHARED, ARGV[2], "COUNT", ARGV[3]), 1, 2)
local plain = {}
for i = 1, #flat, 2 do
  local lane = read_lane(flat[i], nil, flat[i + 1])
  let_go(lane, true)
  if is_plain(lane) then plain[#plain + 1] = lane[NAME] end
end
if #plain > 0 then many("HDEL", SHARED, plain) end
-- Without waiting tasks no lane is ready.
if book.waiting == 0 then call("UNLINK", P .. "rest") end
return cursor
