-- The stream of an outbox; outbox_put.lua has the map of its keys.
--
-- exports: call P read_entry

call = redis.call
P = string.match(KEYS[1], "^(.*)parcels$")

-- Id, job, number of records and blob of one entry: the server gives its id, and its fields as a list of names and values.
function read_entry(entry)
  local id, fields = entry[1], entry[2]
  local _, job, _, records, _, blob = unpack(fields, 1, 6)
  return id, job, records, blob
end
