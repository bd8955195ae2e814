#!lua
-- Queue parked parcels again, oldest first.
--   KEYS[1] parcels   ARGV[1] how many at most
--   returns their number
--
-- uses outbox: call P read_entry

local parked = call("XRANGE", P .. "parked", "-", "+", "COUNT", ARGV[1])

for _, entry in ipairs(parked) do
  local id, job, records, blob = read_entry(entry)
  call("XADD", KEYS[1], "*", "job", job, "records", records, "blob", blob)
  call("HINCRBY", P .. "jobs", job, 1)
  call("HINCRBY", P .. "books", "records", records)
  call("HINCRBY", P .. "books", "bytes", #blob)
  call("XDEL", P .. "parked", id)
end
return #parked
