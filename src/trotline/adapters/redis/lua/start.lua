#!lua
-- A new job's books, all of them empty.
--   KEYS[1] P job     ARGV[1] when it was started

redis.call("HSET", KEYS[1], "waiting", 0, "leased", 0, "done", 0, "dead", 0, "entered", 0, "ended", 0, "leases", 0,
  "turns", 0, "delayed", 0, "buckets", 1, "seen", 0, "draining", 0, "state", "running", "sealed", 0, "announced", 0,
  "idle", 0, "started_at", ARGV[1])
return 1
