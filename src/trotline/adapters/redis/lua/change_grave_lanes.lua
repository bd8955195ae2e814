#!lua
-- Give buried tasks another lane and blob: they are still dead. Not those that leave for another shard.
--   KEYS[1] P job     ARGV[2] msgpack: for each its id, lane and blob
--
-- uses clock: call
-- uses job_counters: sub unpack_ P
-- uses dequeued_tasks: wrap

local asked = cmsgpack.unpack(ARGV[2])
for i = 1, #asked, 3 do
  local id, lane, blob = asked[i], asked[i + 1], asked[i + 2]
  local grave = call("HGET", P .. "graves", id)
  if grave and call("HEXISTS", P .. "leaving", id) == 0 then
    local _, _, _, at = unpack_(GRAVE_FORM, grave)
    local level = unpack_(PARCEL_FORM, grave, at)
    call("HSET", P .. "graves", id, sub(grave, 1, at - 1) .. wrap(lane, level) .. blob)
  end
end
return 1
