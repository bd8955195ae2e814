#!lua flags=allow-oom
-- Hold a batch for longer.
--   KEYS[1] name   ARGV[2] batch
--   returns 1, or 0 if it went back
--
-- uses clock: call now
-- uses inbox: batches

if not call("ZSCORE", batches, ARGV[2]) then return 0 end
call("ZADD", batches, now, ARGV[2])
return 1
