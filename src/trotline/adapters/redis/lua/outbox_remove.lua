#!lua flags=allow-oom
-- Remove parcels that are stored, or park them. Missing ones are ignored.
--   KEYS[1] parcels   ARGV[1] why they are parked, or ""   ARGV[2...] ids
--   returns their number
--
-- uses outbox: call P read_entry

local why, gone = ARGV[1], 0

for i = 2, #ARGV do
  local entry = call("XRANGE", KEYS[1], ARGV[i], ARGV[i])[1]
  if entry then
    local id, job, records, blob = read_entry(entry)
    if why ~= "" then
      call("XADD", P .. "parked", "*", "job", job, "records", records, "blob", blob, "why", why)
    end
    call("XACK", KEYS[1], "writers", id)
    call("XDEL", KEYS[1], id)
    if call("HINCRBY", P .. "jobs", job, -1) <= 0 then call("HDEL", P .. "jobs", job) end
    call("HINCRBY", P .. "books", "records", 0 - tonumber(records))
    call("HINCRBY", P .. "books", "bytes", 0 - #blob)
    call("HINCRBY", P .. "books", why == "" and "written" or "parked", 1)
    gone = gone + 1
  end
end
return gone
