#!lua flags=allow-oom
-- Record a worker's heartbeat.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] its WorkerInfo, or ""
--   P workers    zset  W -> last heartbeat      P about   hash  W -> WorkerInfo
--
-- uses clock: call now
-- uses job_counters: P

call("ZADD", P .. "workers", now, ARGV[2])
if ARGV[3] ~= "" then call("HSET", P .. "about", ARGV[2], ARGV[3]) end
return 1
