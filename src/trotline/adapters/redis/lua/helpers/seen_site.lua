-- The duplicate filter that the jobs of one spider share, with expiry.
--
--   P s:...              what this job has admitted
--   SITE slices          hash  number of a slice -> until when it takes fingerprints, and its memory;  "last" -> number
--   SITE NUMBER:...      the memory of a slice
--   P job site           the prefix SITE: what the jobs of a spider share in this shard
--         span window    how long a slice takes fingerprints, and how long they are remembered;  slices: plan of Bloom
--
-- A slice takes what is admitted for some time, then the next one does. It is forgotten when everything in it is older
-- than the window: entry by entry but for the length of a slice, never all at once.
--
-- A link is new if neither this job nor a slice knows it. What was asked for by name (depth 0: seeds, push) is new
-- once in every job: a second job would visit nothing at all if its first page were known.
--
-- uses clock: call now
-- uses job_counters: byte JOB

-- It puts itself in the place of the job's own memory: seen_has, seen_add and seen_close are those of the helper in
-- front of it, and memory_... those of fingerprints_exact.lua or fingerprints_bloom.lua.
local SITE
local REMOVED = 20

local own_has, own_add = seen_has, seen_add -- once
local slices, expired, span, window
local changed = false

local function read_slices()
  if slices then return end
  local length, remembered, site = unpack(call("HMGET", JOB, "span", "window", "site"), 1, 3)
  span, window, SITE = tonumber(length), tonumber(remembered), site .. "seen:" .. KIND .. ":"
  slices, expired = {}, {}
  local flat = call("HGETALL", SITE .. "slices")
  for i = 1, #flat, 2 do
    if flat[i] ~= "last" then
      local slice = cmsgpack.unpack(flat[i + 1])
      slice.number = tonumber(flat[i])
      local list = slice.closes + window > now and slices or expired
      list[#list + 1] = slice
    end
  end
  table.sort(slices, function(one, other) return one.number > other.number end)
end

local function keys_of(slice)
  return SITE .. slice.number .. ":"
end

local function write_slice(slice)
  local kept = {closes = slice.closes, buckets = slice.buckets, seen = slice.seen, plan = slice.plan, left = slice.left}
  call("HSET", SITE .. "slices", slice.number, cmsgpack.pack(kept))
end

-- The slice that takes what comes now.
local function open_slice()
  local newest = slices[1]
  if newest and newest.closes > now then return newest end
  local slice = {number = call("HINCRBY", SITE .. "slices", "last", 1), closes = now + span, buckets = 1, seen = 0}
  local plan = call("HGET", JOB, "slices")
  if plan then slice.plan = cmsgpack.unpack(plan) end
  table.insert(slices, 1, slice)
  return slice
end

local function site_has(fingerprint, spread)
  read_slices()
  for i = 1, #slices do
    if memory_has(slices[i], keys_of(slices[i]), fingerprint, spread) then return true end
  end
  return false
end

-- Without a blob: has this job admitted it?
function seen_has(fingerprint, spread, blob)
  if own_has(fingerprint, spread) then return true end
  return blob and byte(blob, BLOB_DEPTH) ~= 0 and site_has(fingerprint, spread)
end

-- True if it is new; from then on it is known.
function seen_add(fingerprint, spread, blob)
  if seen_has(fingerprint, spread, blob) then return false end
  read_slices()
  local slice = open_slice()
  memory_add(slice, keys_of(slice), fingerprint, spread, true)
  own_add(fingerprint, spread)
  changed = true
  return true
end

-- Write changes, and delete some expired keys.
function seen_close()
  if changed then write_slice(slices[1]) end
  local old = expired and expired[1]
  if not old then return end
  old.left = old.left or memory_size(old)
  local upto = math.max(0, old.left - REMOVED)
  for number = old.left, upto + 1, -1 do call("UNLINK", memory_key(old, keys_of(old), number)) end
  old.left = upto
  if upto == 0 then call("HDEL", SITE .. "slices", old.number) else write_slice(old) end
end
