#!lua
-- What was parked waits again, the oldest first.
--   KEYS[1] parcels   ARGV[1] how many at most
--   gives how many there were

local call = redis.call
local P = string.match(KEYS[1], "^(.*)parcels$")
local parked = call("XRANGE", P .. "parked", "-", "+", "COUNT", ARGV[1])

for _, entry in ipairs(parked) do
  local job, records, blob = entry[2][2], entry[2][4], entry[2][6]
  call("XADD", KEYS[1], "*", "job", job, "records", records, "blob", blob)
  call("HINCRBY", P .. "jobs", job, 1)
  call("HINCRBY", P .. "books", "records", records)
  call("HINCRBY", P .. "books", "bytes", #blob)
  call("XDEL", P .. "parked", entry[1])
end
return #parked
