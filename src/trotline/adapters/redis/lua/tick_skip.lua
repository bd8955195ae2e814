#!lua
-- needs: term
-- Remember a tick without a job. The job that ran last stays: whoever leads next must know whose seeds may be missing.
--   ARGV[2] the holder   ARGV[3] its epoch   ARGV[4] the tick   ARGV[5] its schedule
--   gives "over" | "done"

if not runs(ARGV[2], ARGV[3]) then return "over" end
local last = call("HMGET", TICK, "at", "schedule")
if not last[1] or tonumber(last[1]) < tonumber(ARGV[4]) or last[2] ~= ARGV[5] then
  call("HSET", TICK, "at", ARGV[4], "schedule", ARGV[5])
  call("HSETNX", TICK, "job", "")
  call("HSETNX", TICK, "ran", "0")
end
return "done"
