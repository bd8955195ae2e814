#!lua flags=allow-oom
-- A worker lives.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] what it tells of itself, or ""
--   P workers    zset  W -> when it was last heard      P about   hash  W -> what it tells of itself
--
-- uses clock: call now
-- uses job: P

call("ZADD", P .. "workers", now, ARGV[2])
if ARGV[3] ~= "" then call("HSET", P .. "about", ARGV[2], ARGV[3]) end
return 1
