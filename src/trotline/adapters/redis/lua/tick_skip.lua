#!lua
-- Record a tick without a job. The last job is kept: the next leader must know which job may lack seeds.
--   ARGV[2] the holder   ARGV[3] its epoch   ARGV[4] the tick   ARGV[5] its schedule
--   returns "over" | "done"
--
-- uses clock: call
-- uses leader_term: TICK runs

if not runs(ARGV[2], ARGV[3]) then return "over" end
local last, schedule = unpack(call("HMGET", TICK, "at", "schedule"), 1, 2)
if not last or tonumber(last) < tonumber(ARGV[4]) or schedule ~= ARGV[5] then
  call("HSET", TICK, "at", ARGV[4], "schedule", ARGV[5])
  call("HSETNX", TICK, "job", "")
  call("HSETNX", TICK, "ran", "0")
end
return "done"
