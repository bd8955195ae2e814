#!lua
-- List the job of a tick, and record the tick, atomically.
--   ARGV[2] the holder   ARGV[3] its epoch   ARGV[4] the tick   ARGV[5] its schedule
--   ARGV[6] the job's id, "" to check only   ARGV[7] the job, JSON
--   returns "over" | "passed" | "known" and the id of the tick's job | "free" if only checked | "started"
-- trotline:{jobs}:all, latest, order: jobs.py
--
-- uses clock: call
-- uses leader_term: JOBS SPIDER TICK runs

if not runs(ARGV[2], ARGV[3]) then return {"over"} end
local at = tonumber(ARGV[4])
local last, ran, job = unpack(call("HMGET", TICK, "at", "ran", "job"), 1, 3)
if last and tonumber(last) >= at then
  if job ~= "" and tonumber(ran) == at then return {"known", job} end
  return {"passed"}
end
if ARGV[6] == "" then return {"free"} end
call("HSET", JOBS .. "all", ARGV[6], ARGV[7])
call("HSET", JOBS .. "latest", SPIDER, ARGV[6])
call("RPUSH", JOBS .. "order", ARGV[6])
call("HSET", TICK, "at", ARGV[4], "schedule", ARGV[5], "job", ARGV[6], "ran", ARGV[4])
return {"started"}
