#!lua flags=allow-oom
-- Parcels were published; and more to publish (helpers/broker_shelves.lua).
--   KEYS[1] P job     ARGV[2] how many     ARGV[3] seconds after which a parcel is handed out again
--   ARGV[4] and after: ids of published parcels
--   returns id, number of tasks and shelf, and body of each parcel
--
-- uses clock: call now
-- uses job_counters: P woke close_books

for i = 4, #ARGV do
  local id = ARGV[i]
  -- If it is not there, another client has published it as well, or it is moved already.
  if call("ZREM", P .. "unsent", id) == 1 then
    call("HDEL", P .. "parcels", id)
    local shelf = string.match(call("HGET", P .. "shelved", id) or "", "^%d+ (%w+)$")
    if shelf then call("HINCRBY", P .. "shelves", shelf, 1) end
    woke = true
  end
end
if woke then close_books() end
local found = {}
if tonumber(ARGV[2]) > 0 then
  local ids = call("ZRANGEBYSCORE", P .. "unsent", "-inf", now - tonumber(ARGV[3]), "LIMIT", 0, ARGV[2])
  for i = 1, #ids do
    local body = call("HGET", P .. "parcels", ids[i])
    call("ZADD", P .. "unsent", now, ids[i])
    local shelf = call("HGET", P .. "shelved", ids[i])
    if body and shelf then found[#found + 1], found[#found + 2], found[#found + 3] = ids[i], shelf, body end
  end
end
return found
