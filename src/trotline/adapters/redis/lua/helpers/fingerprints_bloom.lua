-- A Bloom filter: two bytes per fingerprint, with a small rate of false duplicates.
--
--   KEYS .. LAYER .. ":" .. PARTITION    string of bits
--
-- A memory is a table: `seen`, how many fingerprints it has, and `plan`, the layers of rules/bloom_filter.py:
-- capacity, blocks, probes. Layers are filled one after another. A fingerprint belongs to one block of 128 bytes in each layer,
-- and sets some bits of it: one look at one key. A partition is made when the first fingerprint comes to it, in its
-- full size: a string that grows would be given twice the room that it needs.
--
-- uses clock: call
-- uses job_counters: sub byte floor ceil min JOB
-- exports: KIND memory_has memory_add memory_size memory_key

KIND = "bloom"
local MASKS = {[0] = 1, 2, 4, 8, 16, 32, 64, 128}
local band, bor = bit.band, bit.bor

-- The bits of a fingerprint are drawn by a small random generator (Park and Miller's; exact in a Lua number). It starts
-- from the last nine digits, which have nothing to do with `spread`, the upper bits. Bits at regular steps would hit
-- each other more often: a fifth more mistakes.
local FACTOR, MODULUS, TO_BIT = 16807, 2147483647, 2097152

local function seed_of(fingerprint)
  return math.abs(tonumber(sub(fingerprint, -9))) + 1
end

local function place_of(layer, spread)
  local block = spread % layer[LAYER_BLOCKS]
  local partition = floor(block / PER_PARTITION)
  return partition, (block - partition * PER_PARTITION) * BLOCK_BYTES
end

-- Are all the bits set in the block?
local function all_set(block, layer, fingerprint)
  local seed = seed_of(fingerprint)
  for _ = 1, layer[LAYER_PROBES] do
    seed = seed * FACTOR % MODULUS
    local at = floor(seed / TO_BIT)
    if band(byte(block, floor(at / 8) + 1), MASKS[at % 8]) == 0 then return false end
  end
  return true
end

local function with_bits(block, layer, fingerprint)
  local bytes, seed = {byte(block, 1, BLOCK_BYTES)}, seed_of(fingerprint)
  for _ = 1, layer[LAYER_PROBES] do
    seed = seed * FACTOR % MODULUS
    local at = floor(seed / TO_BIT)
    local place = floor(at / 8) + 1
    bytes[place] = bor(bytes[place], MASKS[at % 8])
  end
  return string.char(unpack(bytes, 1, BLOCK_BYTES))
end

local function layer_has(keys, layer, fingerprint, spread)
  local partition, at = place_of(layer, spread)
  local block = call("GETRANGE", keys .. partition, at, at + BLOCK_BYTES - 1)
  return block ~= "" and all_set(block, layer, fingerprint)
end

local function layer_add(keys, layer, fingerprint, spread)
  local partition, at = place_of(layer, spread)
  local key = keys .. partition
  local block = call("GETRANGE", key, at, at + BLOCK_BYTES - 1)
  if block == "" then
    local blocks = min(PER_PARTITION, layer[LAYER_BLOCKS] - partition * PER_PARTITION)
    call("SETRANGE", key, blocks * BLOCK_BYTES - 1, "\0")
    block = string.rep("\0", BLOCK_BYTES)
  elseif all_set(block, layer, fingerprint) then
    return false
  end
  call("SETRANGE", key, at, with_bits(block, layer, fingerprint))
  return true
end

-- The plan, the layer that takes what is new, and how many the layers take before that one is full.
local function layers_of(memory)
  if not memory.plan then memory.plan = cmsgpack.unpack(call("HGET", JOB, "plan")) end
  local last = memory.last or 1
  local room = memory.room or memory.plan[1][LAYER_CAPACITY]
  while memory.seen >= room and last < #memory.plan do
    last = last + 1
    room = room + memory.plan[last][LAYER_CAPACITY]
  end
  memory.last, memory.room = last, room
  return memory.plan, last
end

function memory_has(memory, keys, fingerprint, spread)
  local plan, last = layers_of(memory)
  for number = last, 1, -1 do
    if layer_has(keys .. number .. ":", plan[number], fingerprint, spread) then return true end
  end
  return false
end

-- True if it is new; from then on it is known. `asked`: memory_has has returned false.
function memory_add(memory, keys, fingerprint, spread, asked)
  local plan, last = layers_of(memory)
  for number = asked and 0 or last - 1, 1, -1 do
    if layer_has(keys .. number .. ":", plan[number], fingerprint, spread) then return false end
  end
  if not layer_add(keys .. last .. ":", plan[last], fingerprint, spread) then return false end
  memory.seen = memory.seen + 1
  return true
end

local function partitions(layer)
  return ceil(layer[LAYER_BLOCKS] / PER_PARTITION)
end

-- How many keys it may have.
function memory_size(memory)
  local plan, last = layers_of(memory)
  local sum = 0
  for number = 1, last do sum = sum + partitions(plan[number]) end
  return sum
end

function memory_key(memory, keys, number)
  local layer = 1
  while number > partitions(memory.plan[layer]) do
    number, layer = number - partitions(memory.plan[layer]), layer + 1
  end
  return keys .. layer .. ":" .. (number - 1)
end
