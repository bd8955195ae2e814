#!lua
-- Tasks that left have arrived in their new shard: their graves are emptied. Returns the number of those that were.
--   KEYS[1] P job     ARGV[2] msgpack: ids
--
-- uses clock: call
-- uses job_counters: unpack_ P close_books
-- uses dequeued_tasks: empty_grave

local ids, dropped = cmsgpack.unpack(ARGV[2]), 0
for i = 1, #ids do
  local grave = call("HGET", P .. "graves", ids[i])
  if grave and call("HDEL", P .. "leaving", ids[i]) == 1 then
    local _, why = unpack_(GRAVE_FORM, grave)
    empty_grave(ids[i], why)
    dropped = dropped + 1
  end
end
if dropped > 0 then close_books() end
return dropped
