#!lua
-- A new job's books, all of them empty; see job.lua. One that is there already is left alone.
--   KEYS[1] P job     ARGV[1] when it was started     ARGV[2] shards

if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
redis.call("HSET", KEYS[1], "books", struct.pack("<dddddddddddd", 0, 0, 0, 0, 0, 0, 0, 0, 0, 2048, 0, 0),
  "state", "running", "sealed", 0, "announced", 0, "idle", 0, "started_at", ARGV[1], "shards", ARGV[2])
return 1
