#!lua flags=allow-oom
-- Delete jobs from the list. Their keys are deleted afterwards, by any leader that finds them in `retired`.
--   ARGV[2] the holder   ARGV[3] its epoch   ARGV[4...] ids
--   trotline:{jobs}:retired   set of ids whose keys may still be there
--   returns "over" | "done"
--
-- uses clock: call
-- uses leader_term: JOBS runs

if not runs(ARGV[2], ARGV[3]) then return "over" end
for i = 4, #ARGV do
  call("SADD", JOBS .. "retired", ARGV[i])
  call("LREM", JOBS .. "order", 0, ARGV[i])
  call("HDEL", JOBS .. "all", ARGV[i])
  call("DEL", JOBS .. "upgrades:" .. ARGV[i])
end
return "done"
