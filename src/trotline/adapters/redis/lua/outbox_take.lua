#!lua flags=allow-oom
-- Lease parcels to a writer: first those of silent writers, then the oldest.
--   KEYS[1] parcels   ARGV[1] lease in milliseconds
--   ARGV[2] how many at most   ARGV[3] how many bytes are enough
--   returns a ParcelRow (lua_layouts.py) for each
--
-- uses outbox: call read_entry

local key, group = KEYS[1], "writers"
-- Usually it exists already.
redis.pcall("XGROUP", "CREATE", key, group, "0", "MKSTREAM")

local given, bytes = {}, 0
local function give(entry, times)
  local id, job, _, blob = read_entry(entry)
  local at = #given + 1
  given[at + PARCEL_ID], given[at + PARCEL_JOB], given[at + PARCEL_BLOB], given[at + PARCEL_TIMES] = id, job, blob, times
  bytes = bytes + #blob
end

local most, enough = tonumber(ARGV[2]), tonumber(ARGV[3])
local at = "0-0"
repeat
  -- It checks ten of them at a time, and most may be leased by living writers.
  local cursor, claimed = unpack(call("XAUTOCLAIM", key, group, "writer", ARGV[1], at, "COUNT", 1), 1, 2)
  at = cursor
  for _, entry in ipairs(claimed) do
    local id = read_entry(entry)
    local pending = call("XPENDING", key, group, id, id, 1)[1]
    local _, _, _, times = unpack(pending or {}, 1, 4)
    give(entry, times or 1)
  end
until at == "0-0" or #given >= most * PARCEL_SIZE or bytes >= enough
while #given < most * PARCEL_SIZE and bytes < enough do
  local fresh = call("XREADGROUP", "GROUP", group, "writer", "COUNT", 1, "STREAMS", key, ">")
  if not fresh then break end
  local _, entries = unpack(fresh[1], 1, 2)
  give(entries[1], 1)
end
return given
