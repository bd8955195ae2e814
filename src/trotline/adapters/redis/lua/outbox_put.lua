#!lua
-- Queue a batch of results for a writer, atomically.
--   trotline:{outbox.NAME}:parcels   stream   job, records, blob: queued, or leased by a writer
--   trotline:{outbox.NAME}:jobs      hash     job -> number of its parcels
--   trotline:{outbox.NAME}:books     hash     records bytes (of queued parcels)  written parked (total)
--   trotline:{outbox.NAME}:parked    stream   job, records, blob, why: parcels that could not be stored
--
--   KEYS[1] parcels   ARGV[1] job   ARGV[2] most parcels   ARGV[3] most bytes   ARGV[4...] blob, records, ...
--   returns the number of parcels before; negative if that was too many and nothing was queued
--
-- uses outbox: call P

local waiting = call("XLEN", KEYS[1])
local bytes = tonumber(call("HGET", P .. "books", "bytes")) or 0

if waiting >= tonumber(ARGV[2]) or bytes >= tonumber(ARGV[3]) then return -waiting end
local put, records, size = 0, 0, 0
for i = 4, #ARGV, 2 do
  call("XADD", KEYS[1], "*", "job", ARGV[1], "records", ARGV[i + 1], "blob", ARGV[i])
  put, records, size = put + 1, records + tonumber(ARGV[i + 1]), size + #ARGV[i]
end
call("HINCRBY", P .. "jobs", ARGV[1], put)
call("HINCRBY", P .. "books", "records", records)
call("HINCRBY", P .. "books", "bytes", size)
return waiting
