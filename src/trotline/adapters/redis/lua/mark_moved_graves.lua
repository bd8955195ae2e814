#!lua
-- Buried tasks are to go on in another shard: record where each goes. A grave whose task is under way there already keeps
-- its first record, so that a repeated or resumed move sends the same.
--   KEYS[1] P job     ARGV[2] msgpack: for each its id and the parcel that goes
--   returns for each the recorded parcel, and the grave; or false twice if there is no such grave
--
--   P leaving    hash  id -> parcel, until the grave is dropped (delete_moved_graves.lua)
--
-- uses clock: call
-- uses job_counters: P

local asked, found = cmsgpack.unpack(ARGV[2]), {}
for i = 1, #asked, 2 do
  local id = asked[i]
  local grave = call("HGET", P .. "graves", id)
  if grave then call("HSETNX", P .. "leaving", id, asked[i + 1]) end
  found[i], found[i + 1] = grave and call("HGET", P .. "leaving", id), grave
end
return found
