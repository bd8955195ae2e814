-- The rings of lanes: members of a proxy pool that may go out there, the next one first.
--
--   S ring:LANE   list  those members (packed, MEMBER in lua_layouts.py); those that came back together are one string
--   S rings       hash  lane -> what is known of its ring (RING in lua_layouts.py up to GAP_AT; of a calm one up to CHANGES)
--
-- Members that go to the tail of a ring are pushed together, as one string: at the end of the call, or before the ring is
-- read. So a batch of visits through the members of a lane costs one pop and one push. What is known of the rings of all
-- lanes of a call is read by one command and written by one.
--
-- part of pool_members
-- uses clock: call
-- uses job_counters: sub ceil max min pack_ unpack_ S many
-- uses lane_pool: pool_of
-- uses proxy_pools: pool_named
-- uses proxy_ring: proxy_ring
-- uses block_evidence: all_calm read_evidence evidence_of
-- exports: begin_rings open_rings sooner_lanes read_rings keep_ring ring_of change_ring put_at_head put_at_tail
-- exports: pop_members first_of flush_tails flush_rings write_ring_strings

-- Members of one string of the list.
local MOST_TOGETHER = 16
-- Counts as text: numbers are turned into text by each call.
local COUNTS = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"} -- once

-- What costs more to make than to keep from call to call, of up to so many lanes: the key of the list, by S and lane; and
-- the place that a lane had in the arrays of tails. Who finds another lane there knows that it is not.
local MOST_LANES_KEPT = 10000
local keys_of = {} -- once
local places = {} -- once
local lanes_kept = 0 -- once
local ring_keys

-- Lane -> its ring as an array, and those of them that have changed.
open_rings = nil
local changed
-- Rings that have changed and stayed packed: lane and string, flat. These arrays are kept: what is behind the count is old.
local kept = {} -- once
local kept_count
-- For the tails of these lanes: the first member, in two parts, and more of them, if any.
local tail_lanes, tail_fronts, tail_states = {}, {}, {} -- once
local tail_more, tail_count
-- Lanes in which a member may go out sooner than was known. nil: nothing of proxy pools was needed.
sooner_lanes = nil

function begin_rings()
  open_rings, changed, kept_count, sooner_lanes, tail_more, tail_count = {}, {}, 0, {}, {}, 0
  if lanes_kept >= MOST_LANES_KEPT then
    keys_of, places, lanes_kept = {}, {}, 0
  end
  ring_keys = keys_of[S]
  if not ring_keys then
    ring_keys = {}
    keys_of[S] = ring_keys
  end
end

local function ring_key(name)
  local key = ring_keys[name]
  if not key then
    key = S .. "ring:" .. name
    ring_keys[name], lanes_kept = key, lanes_kept + 1
  end
  return key
end

-- Rings that stayed packed are written, before they are read again.
function flush_rings()
  for from = 1, kept_count, 1000 do
    call("HSET", S .. "rings", unpack(kept, from, min(kept_count, from + 999)))
  end
  kept_count = 0
end

-- What is known of the rings of up to 1,000 lanes, packed, in the same order.
function read_rings(names)
  flush_rings()
  read_evidence(names)
  return call("HMGET", S .. "rings", unpack(names, 1, #names))
end

-- A ring that is not open has changed.
function keep_ring(name, packed)
  kept[kept_count + 1], kept[kept_count + 2] = name, packed
  kept_count = kept_count + 2
end

local function packed_ring(name)
  if kept_count > 0 and kept[kept_count - 1] == name then return kept[kept_count] end
  flush_rings()
  return call("HGET", S .. "rings", name)
end

-- A string that is no ring was written by another program.
local function unpack_ring(packed)
  if packed and #packed == CALM_RING_BYTES then
    local dealt, changes = unpack_(CALM_RING_FORM, packed)
    return dealt, changes, 0, 0, 0
  end
  if not packed or #packed ~= RING_BYTES then return 0, 0, 0, 0, 0 end
  local dealt, changes, first_rest, gap, gap_at = unpack_(RING_FORM, packed)
  return dealt, changes, first_rest, gap, gap_at
end

local function pack_ring(ring)
  if ring[RING_FIRST_REST] == 0 and ring[RING_GAP] == 0 and ring[RING_GAP_AT] == 0 then
    return pack_(CALM_RING_FORM, ring[RING_DEALT], ring[RING_CHANGES])
  end
  return pack_(RING_FORM, unpack(ring, RING_DEALT, RING_GAP_AT))
end

-- The ring as an array.
function ring_of(name)
  local ring = open_rings[name]
  if ring then return ring end
  local known = evidence_of(name)
  local dealt, changes, first_rest, gap, gap_at = unpack_ring(packed_ring(name))
  if known then
    ring = {dealt, changes, first_rest, gap, gap_at, unpack_(EVIDENCE_FORM, known)}
  else
    ring = {dealt, changes, first_rest, gap, gap_at, 0, 0, 0, 0, 0, 0, proxy_ring().not_tested}
  end
  open_rings[name], all_calm = ring, false
  return ring
end

function change_ring(name) changed[name] = true end

-- Can the lane be dealt members that it never had? Then it does not wait for one that is out.
local function has_more(name)
  local pool, ring = pool_named(pool_of(name)), ring_of(name)
  return pool and ring[RING_DEALT] < pool.last and ring[RING_CHANGES] == pool.changes
end

-- Packed members, as they were.
function put_at_head(name, packed)
  local strings, size = {}, MOST_TOGETHER * MEMBER_BYTES
  for from = #packed - (#packed - 1) % size, 1, -size do strings[#strings + 1] = sub(packed, from, from + size - 1) end
  many("LPUSH", ring_key(name), strings)
end

-- A packed member, perhaps in two parts.
function put_at_tail(name, front, state)
  local at = places[name]
  if not at or at > tail_count or tail_lanes[at] ~= name then
    tail_count = tail_count + 1
    tail_lanes[tail_count], tail_fronts[tail_count], tail_states[tail_count] = name, front, state
    if not at then lanes_kept = lanes_kept + 1 end
    places[name] = tail_count
    return
  end
  local more = tail_more[at]
  if more then
    local count = #more
    more[count + 1], more[count + 2] = front, state
  else
    tail_more[at] = {front, state, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
  end
end

-- All of a lane, in strings of a few.
local function push_together(key, first, more)
  local strings, parts = {}, 2 * MOST_TOGETHER
  -- The first member is two parts too.
  strings[1] = first .. table.concat(more, "", 1, parts - 2)
  for from = parts - 1, #more, parts do
    strings[#strings + 1] = table.concat(more, "", from, min(#more, from + parts - 1))
  end
  return call("RPUSH", key, unpack(strings, 1, #strings)) - #strings + 1
end

-- Members that came back in this call are pushed.
function flush_tails()
  local count = tail_count
  tail_count = 0
  for i = 1, count do
    local name, more, length = tail_lanes[i], tail_more[i], nil
    local first = tail_fronts[i] .. tail_states[i]
    if not more then
      length = call("RPUSH", ring_key(name), first)
    elseif #more < 2 * MOST_TOGETHER then
      length = call("RPUSH", ring_key(name), first .. table.concat(more))
    else
      length = push_together(ring_key(name), first, more)
    end
    -- It was empty.
    if length == 1 and not has_more(name) then sooner_lanes[name] = true end
  end
  if count > 0 then tail_more = {} end
end

-- Only strings of whole members: another one was written by another program.
local function whole_ones(strings)
  local whole = {}
  for i = 1, #strings do
    if #strings[i] % MEMBER_BYTES == 0 then whole[#whole + 1] = strings[i] end
  end
  return table.concat(whole)
end

-- From the head of a ring, at least so many if there are as many, or some; "": it is empty.
function pop_members(name, count)
  if tail_count > 0 then flush_tails() end
  local key = ring_key(name)
  local packed = call("LPOP", key) or ""
  if #packed == count * MEMBER_BYTES then return packed end
  local size = #packed / MEMBER_BYTES
  if #packed % MEMBER_BYTES > 0 then size = 0 end
  if packed == "" or size >= count then return packed end
  -- The next ones are likely to be as large.
  local strings = call("LPOP", key, COUNTS[ceil((count - size) / max(1, size))] or count - size) or {}
  return whole_ones({packed, unpack(strings, 1, #strings)})
end

-- The next member of the ring, as an array; nil: it is empty.
function first_of(name)
  flush_tails()
  local head = call("LINDEX", ring_key(name), "0")
  return head and #head >= MEMBER_BYTES and proxy_ring().unpack(head) or nil
end

function write_ring_strings()
  for name in pairs(changed) do keep_ring(name, pack_ring(open_rings[name])) end
  changed = {}
  flush_rings()
end
