#!lua
-- The office is free at once, if the term is still ours.
--   ARGV[2] the holder   ARGV[3] its epoch
--
-- uses clock: call
-- uses leader_term: OFFICE runs

if runs(ARGV[2], ARGV[3]) then call("HSET", OFFICE, "ends", 0) end
return 1
