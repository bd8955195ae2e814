#!lua flags=allow-oom
-- The entries of a batch wait again.
--   KEYS[1] name   ARGV[1] batch   ARGV[2] LEFT or RIGHT: the end with the oldest
--   returns 1, or 0 if it went back before
--
-- uses inbox: call batches kind_of return_batch

if kind_of() or not call("ZSCORE", batches, ARGV[1]) then return 0 end
return_batch(ARGV[1], ARGV[2])
return 1
