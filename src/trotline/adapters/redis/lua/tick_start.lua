#!lua
-- needs: term
-- Name the job of a tick, and remember the tick, in one step.
--   ARGV[2] the holder   ARGV[3] its epoch   ARGV[4] the tick   ARGV[5] its schedule
--   ARGV[6] the job's id, "" to ask only   ARGV[7] the job, JSON
--   gives "over" | "passed" | "known" and the id of the tick's job | "free" if only asked | "started"
-- trotline:{jobs}:all, latest, order: jobs.py

if not runs(ARGV[2], ARGV[3]) then return {"over"} end
local at = tonumber(ARGV[4])
local last = call("HMGET", TICK, "at", "ran", "job")
if last[1] and tonumber(last[1]) >= at then
  if last[3] ~= "" and tonumber(last[2]) == at then return {"known", last[3]} end
  return {"passed"}
end
if ARGV[6] == "" then return {"free"} end
call("HSET", JOBS .. "all", ARGV[6], ARGV[7])
call("HSET", JOBS .. "latest", NAME, ARGV[6])
call("RPUSH", JOBS .. "order", ARGV[6])
call("HSET", TICK, "at", ARGV[4], "schedule", ARGV[5], "job", ARGV[6], "ran", ARGV[4])
return {"started"}
