-- A memory of fingerprints, each kept as a whole number. For slices; a job's own is in seen_exact.lua.
--
--   KEYS .. N    set of integers (kept by the server as a sorted array: 8 bytes each)
--
-- A memory is a table: `buckets`, how many sets there are, and `seen`, how many fingerprints. Linear hashing: buckets
-- are split one by one as they fill, so that none grows beyond what the server keeps as an array (512), and no call
-- ever pays for all of them. `spread` determines the bucket of a fingerprint.
--
-- uses clock: call
-- uses job_counters: floor min
-- exports: KIND memory_has memory_add memory_size memory_key

KIND = "exact"
local FILL = 190

local function ring_of(memory)
  local ring = memory.ring or 1
  while ring * 2 <= memory.buckets do ring = ring * 2 end
  memory.ring = ring
  return ring
end

local function bucket_of(memory, spread)
  local ring = ring_of(memory)
  local bucket = spread % (2 * ring)
  if bucket >= memory.buckets then bucket = spread % ring end
  return bucket
end

local function split_bucket(memory, keys)
  local ring = ring_of(memory)
  local old, new, moved = memory.buckets - ring, memory.buckets, {}
  for _, member in ipairs(call("SMEMBERS", keys .. old)) do
    local spread = floor((tonumber(member) + FINGERPRINT_HALF) / SPREAD_STEP)
    if spread % (2 * ring) ~= old then moved[#moved + 1] = member end
  end
  for from = 1, #moved, 1000 do
    local upto = min(#moved, from + 999)
    call("SADD", keys .. new, unpack(moved, from, upto))
    call("SREM", keys .. old, unpack(moved, from, upto))
  end
  memory.buckets = new + 1
end

function memory_has(memory, keys, fingerprint, spread)
  return call("SISMEMBER", keys .. bucket_of(memory, spread), fingerprint) == 1
end

-- True if it is new; from then on it is known.
function memory_add(memory, keys, fingerprint, spread)
  if call("SADD", keys .. bucket_of(memory, spread), fingerprint) == 0 then return false end
  memory.seen = memory.seen + 1
  if memory.seen > FILL * memory.buckets then split_bucket(memory, keys) end
  return true
end

-- How many keys it may have.
function memory_size(memory)
  return memory.buckets
end

function memory_key(_, keys, number)
  return keys .. (number - 1)
end
