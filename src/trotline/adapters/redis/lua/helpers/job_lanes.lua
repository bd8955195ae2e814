-- A job's lanes: in which levels it has tasks there, read once per call and written once at its end.
--
--   P lanes         hash  lane -> state, levels and stamps (see pack_lane), while tasks of the job wait there
--   P paces         hash  lane -> its bounds, where they are not the usual ones
--   P q:LANE:LEVEL  list  tasks that wait, first come first served. LEVEL is priority * 2, and 1 more for retries that
--                         need credit; with a queue per route, that of its queue (route_queues.lua)
--   P d:LANE        zset  tasks that are not due yet (level and task) -> due
--   P due           zset  lane -> due time of its first delayed task
--   P m:0:LANE      zset  even levels with tasks for which the packed lane has no room; P m:1:LANE the odd ones
--   P r:LEVEL       list  ready lanes of this level, longest waiting first: stamp (4 bytes) and name
--   P levels        zset  the levels that have such a list
--   P rest          zset  level (4 bytes), stamp and name of a lane that will be queued -> when, in
--                         milliseconds. Stamp 0: look at the lane
--
-- A lane is queued at the best level in which it has tasks, now or from a time on, with the stamp that it stores with the
-- level. An entry that is popped with another stamp is outdated, and skipped; so an entry never has to be searched and
-- removed, and a rested lane is queued without being read. Stamp 0: it is not queued.
-- What all jobs share of a lane is in shared_lanes.lua. Most puts need nothing of it, and do not read it.
--
-- uses clock: call
-- uses job_counters: byte min pack_ unpack_ P tally
-- uses shared_lanes: SHARED SPLIT remember read_shared
-- exports: LANES QUEUE LATE LINE MORE most_levels lanes not_before half more_of repaired add_own read_lane
-- exports: pack_lane fetch load_lanes touch

-- A packed lane: its state and flags, how many levels, which sets of more levels there are (1 even, 2 odd, 3 both),
-- (level, stamp) for each level, and when it is queued, if that is later. Its best even and its best odd level
-- are always among them, and there are more in the sets only while it is full.
local PROBED = 250
local PAIRS = {[0] = "<", "<i4I4", "<i4I4i4I4", "<i4I4i4I4i4I4"}
local HAS_DELAYED, HAS_WAKE = 4, 8
LANES, QUEUE, LATE, LINE, MORE = P .. "lanes", P .. "q:", P .. "d:", P .. "r:", P .. "m:"
-- Of a packed lane. Of a job with a queue per route it has the best levels of each of them.
most_levels = SPLIT and MOST_QUEUED_LEVELS or MOST_LEVELS

lanes, not_before = {}, {}
-- Names of those of which the job's own part was not needed, so far.
half = {}
-- Which sets of more levels a lane has; most have none.
more_of = {}

local function pairs_of(levels)
  return PAIRS[levels] or "<" .. string.rep("i4I4", levels)
end

-- Lanes of which the job's own string could not be read: their place in the queues is unknown.
repaired = {}

local function is_own(own)
  local flags, levels, more = byte(own, 1, 3)
  return more and flags < 2 * HAS_WAKE and flags % HAS_DELAYED <= DRAINING and levels <= most_levels and more <= 3
    and #own == LANE_HEAD_BYTES + PAIR_BYTES * levels + (flags >= HAS_WAKE and WAKE_BYTES or 0)
end

-- Searches the job's tasks where nearly all of them are: in levels near 0, and in those with ready lanes.
local function repair_own(lane)
  local name, found, count = lane[NAME], {}, 0
  local function probe(level)
    if count < most_levels and not found[level] and call("EXISTS", QUEUE .. name .. ":" .. level) == 1 then
      found[level], count = true, count + 1
      local at = LEVELS + 2 * count - 1
      lane[at], lane[at + STAMP] = level, 0
    end
  end
  for level = -PROBED, PROBED do probe(level) end
  for queue = 1, SPLIT and MOST_QUEUES or 0 do
    for level = 0, PROBED do probe(queue * QUEUE_SPAN + level) end
  end
  for _, level in ipairs(call("ZRANGE", P .. "levels", 0, PROBED)) do probe(tonumber(level)) end
  local more = call("EXISTS", MORE .. "0:" .. name) + 2 * call("EXISTS", MORE .. "1:" .. name)
  lane[STATE], lane[DELAYED], lane[KEPT], lane[LEVELS] = RUNNING, call("EXISTS", LATE .. name) == 1, true, count
  if more > 0 then more_of[lane] = more end
  tally("lanes repaired", 1)
  remember(lane)
  lane[TOUCHED] = 1
  repaired[#repaired + 1] = lane
end

-- What the job has in the lane, from its own string, if there is one.
function add_own(lane, own)
  if not own then return end
  if not is_own(own) then return repair_own(lane) end
  local flags, levels, more = byte(own, 1, 3)
  lane[STATE], lane[DELAYED], lane[KEPT], lane[LEVELS] = flags % HAS_DELAYED, flags % HAS_WAKE >= HAS_DELAYED, true, levels
  if levels == 1 then
    lane[LEVELS + 1], lane[LEVELS + 1 + STAMP] = unpack_("<i4I4", own, LANE_LEVELS)
  else
    for i = 1, levels do
      local at = LEVELS + 2 * i - 1
      lane[at], lane[at + STAMP] = unpack_("<i4I4", own, LANE_LEVELS + PAIR_BYTES * (i - 1))
    end
  end
  if flags >= HAS_WAKE then lane[WAKE] = unpack_("<d", own, LANE_LEVELS + PAIR_BYTES * levels) end
  if more > 0 then more_of[lane] = more end
end

-- The lane from its two strings; either of them may be missing.
function read_lane(name, own, shared)
  local lane = read_shared(name, shared)
  add_own(lane, own)
  lanes[name] = lane
  return lane
end

-- The job's packed lane, or nil if it is empty.
function pack_lane(lane)
  local levels, wake = lane[LEVELS], lane[WAKE]
  if levels == 0 and lane[STATE] == RUNNING and not lane[DELAYED] then return nil end
  local flags = lane[STATE] + (lane[DELAYED] and HAS_DELAYED or 0)
  if levels == 1 and wake == 0 then
    -- The same result as below, for the most common lane.
    return pack_("<BHi4I4", flags, 1, lane[LEVELS + 1], lane[LEVELS + 1 + STAMP])
  end
  local own = pack_("<BBB", flags + (wake > 0 and HAS_WAKE or 0), levels, more_of[lane] or 0)
    .. pack_(pairs_of(levels), unpack(lane, LEVELS + 1, LEVELS + 2 * levels))
  return wake > 0 and own .. pack_("<d", wake) or own
end

function fetch(key, names)
  if #names == 0 then return names end
  local found = call("HMGET", key, unpack(names, 1, min(#names, 1000)))
  for from = 1001, #names, 1000 do
    local some = call("HMGET", key, unpack(names, from, min(#names, from + 999)))
    for i = 1, #some do found[from + i - 1] = some[i] end
  end
  return found
end

-- Load lanes for this call.
function load_lanes(names)
  local missing, asked = {}, {}
  for i = 1, #names do
    local name = names[i]
    if (not lanes[name] or half[name]) and not asked[name] then
      asked[name] = true
      missing[#missing + 1] = name
    end
  end
  local own, shared = fetch(LANES, missing), fetch(SHARED, missing)
  for i = 1, #missing do
    local name = missing[i]
    if half[name] then
      add_own(lanes[name], own[i])
      half[name] = nil
    else
      read_lane(name, own[i], shared[i])
    end
  end
end

-- Mark the job's part as changed.
function touch(lane)
  if half[lane[NAME]] then load_lanes({lane[NAME]}) end
  remember(lane)
  lane[TOUCHED] = 1
end
