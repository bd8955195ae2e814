#!lua flags=allow-oom
-- The entries of a batch wait again.
--   KEYS[1] name   ARGV[2] batch   ARGV[3] LEFT or RIGHT: the end with the oldest
--   returns 1, or 0 if it went back before
--
-- uses clock: call
-- uses inbox: batches kind_of return_batch

if kind_of() or not call("ZSCORE", batches, ARGV[2]) then return 0 end
return_batch(ARGV[2], ARGV[3])
return 1
