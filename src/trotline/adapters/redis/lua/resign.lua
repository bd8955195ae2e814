#!lua
-- End the term at once, if it is still ours.
--   ARGV[2] the holder   ARGV[3] its epoch
--
-- uses clock: call
-- uses leader_term: ELECTION runs

if runs(ARGV[2], ARGV[3]) then call("HSET", ELECTION, "ends", 0) end
return 1
