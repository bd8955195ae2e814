#!lua flags=allow-oom
-- Parcels for a writer: first those of writers that were not heard of for too long, then the oldest that wait.
--   KEYS[1] parcels   ARGV[1] milliseconds after which a silent writer has lost its parcels
--   ARGV[2] how many at most   ARGV[3] how many bytes are enough
--   gives id, job, blob, how often it was handed out, id, ...

local call = redis.call
local key, group = KEYS[1], "writers"
-- It is there already, nearly always.
redis.pcall("XGROUP", "CREATE", key, group, "0", "MKSTREAM")

local given, bytes = {}, 0
local function give(entry, times)
  local fields = entry[2]
  given[#given + 1], given[#given + 2] = entry[1], fields[2]
  given[#given + 1], given[#given + 2] = fields[6], times
  bytes = bytes + #fields[6]
end

local most, enough = tonumber(ARGV[2]), tonumber(ARGV[3])
local at = "0-0"
repeat
  -- It looks at ten of them at a time, and most may be in the hands of writers that are well.
  local told = call("XAUTOCLAIM", key, group, "writer", ARGV[1], at, "COUNT", 1)
  at = told[1]
  for _, entry in ipairs(told[2]) do
    local seen = call("XPENDING", key, group, entry[1], entry[1], 1)
    give(entry, seen[1] and seen[1][4] or 1)
  end
until at == "0-0" or #given >= most * 4 or bytes >= enough
while #given < most * 4 and bytes < enough do
  local fresh = call("XREADGROUP", "GROUP", group, "writer", "COUNT", 1, "STREAMS", key, ">")
  if not fresh then break end
  give(fresh[1][2][1], 1)
end
return given
