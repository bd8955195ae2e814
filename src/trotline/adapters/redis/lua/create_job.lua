#!lua
-- Create a job with empty counters (see job_counters.lua); does nothing if it exists.
--   KEYS[1] P job     ARGV[1] when it was started     ARGV[2] shards     ARGV[3] its number     ARGV[4] pace     ARGV[5] books
--   S jobs    hash  number of a job -> its prefix P

if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
redis.call("HSET", KEYS[1], "books", ARGV[5],
  "state", "running", "sealed", 0, "announced", 0, "idle", 0, "started_at", ARGV[1], "shards", ARGV[2],
  "number", ARGV[3], "pace", ARGV[4])
redis.call("HSET", string.match(KEYS[1], "^trotline:{%d+}:") .. "jobs", ARGV[3], string.sub(KEYS[1], 1, -4))
return 1
