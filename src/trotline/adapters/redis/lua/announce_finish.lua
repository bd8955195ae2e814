#!lua flags=allow-oom
-- The end is announced once.
--   KEYS[1] P job     ARGV[2] this call's name     returns 1 to the call that announces it, also when repeated
--
-- uses clock: call
-- uses job_counters: JOB book

if not book.finished_at then return 0 end
local teller = call("HGET", JOB, "announced")
if teller == "0" then
  call("HSET", JOB, "announced", ARGV[2])
  return 1
end
return teller == ARGV[2] and 1 or 0
