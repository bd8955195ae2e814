#!lua flags=allow-oom
-- The end of a job with several shards, kept in its first one. It ended with so many tasks that ever came in: should
-- another one come, anywhere, that number changes, and this end is no longer valid.
--   KEYS[1] P job     ARGV[2] how many tasks ever came in     ARGV[3] name of the call that announces it, or ""
--   gives when it ended; and with a name, 1 to the one that is to tell it, also when it asks again
--
-- uses clock: call now
-- uses job: JOB

if call("HGET", JOB, "finished_with") ~= ARGV[2] then
  call("HSET", JOB, "finished_with", ARGV[2], "finished_at", now, "announced", "0")
end
local teller = call("HGET", JOB, "announced")
if ARGV[3] ~= "" and teller == "0" then
  call("HSET", JOB, "announced", ARGV[3])
  teller = ARGV[3]
end
return {call("HGET", JOB, "finished_at"), teller == ARGV[3] and 1 or 0}
