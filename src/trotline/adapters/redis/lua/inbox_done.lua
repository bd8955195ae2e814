#!lua flags=allow-oom
-- Remove a batch, whose entries are with the frontier, and park some of them.
--   KEYS[1] name   ARGV[2] batch   ARGV[3], ARGV[4]... place in the batch from 0, why it is parked
--   returns 1, or 0 if the batch went back
--
-- uses clock: call
-- uses inbox: taking_key batches parked kind_of

if kind_of() or call("ZREM", batches, ARGV[2]) == 0 then return 0 end
local taking = taking_key(ARGV[2])
for i = 3, #ARGV, 2 do
  -- The first one taken is the last of the list.
  local entry = call("LINDEX", taking, -1 - tonumber(ARGV[i]))
  if entry then call("XADD", parked, "*", "why", ARGV[i + 1], "entry", entry) end
end
call("DEL", taking)
return 1
