#!lua flags=allow-oom
-- The end of a job with several shards, stored in the first one with the number of tasks ever admitted: if another task
-- is admitted in any shard, that number changes, and the end is no longer valid.
--   KEYS[1] P job     ARGV[2] tasks ever admitted     ARGV[3] name of the call that announces it, or ""
--   returns when it ended; and with a name, 1 to the call that announces it, also when repeated
--
-- uses clock: call now
-- uses job_counters: JOB

if call("HGET", JOB, "finished_with") ~= ARGV[2] then
  call("HSET", JOB, "finished_with", ARGV[2], "finished_at", now, "announced", "0")
end
local teller = call("HGET", JOB, "announced")
if ARGV[3] ~= "" and teller == "0" then
  call("HSET", JOB, "announced", ARGV[3])
  teller = ARGV[3]
end
return {call("HGET", JOB, "finished_at"), teller == ARGV[3] and 1 or 0}
