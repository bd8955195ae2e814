#!lua
-- The job of a lease is forgotten: the member that it went out through goes back to its lane's ring.
--   KEYS[1] P out:W     ARGV[1] token (6 bytes)     ARGV[2] S ring:LANE

local member = redis.call("HGET", KEYS[1], ARGV[1])
if not member then return 0 end
redis.call("HDEL", KEYS[1], ARGV[1])
redis.call("LPUSH", ARGV[2], member)
return 1
