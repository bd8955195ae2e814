-- Lanes: one string each, read once per call and written once at its end.
--
--   P lanes         hash  lane -> its pace, and the levels in which tasks wait (see pack_lane)
--   P q:LANE:LEVEL  list  tasks that wait, first come first served. LEVEL is priority * 2, and 1 more for retries that
--                         need credit
--   P d:LANE        zset  tasks that are not due yet (level and task) -> due
--   P due           zset  lane -> due time of its first delayed task
--   P m:0:LANE      zset  even levels with tasks for which the packed lane has no room; P m:1:LANE the odd ones
--   P r:LEVEL       list  lanes that may be served in this level, who waited longest first: stamp (4 bytes) and name
--   P levels        zset  the levels that have such a list
--   P rest          zset  level (4 bytes), stamp and name of a lane that will stand in line -> from when on, in
--                         milliseconds. Stamp 0: look at the lane
--
-- A lane stands in line at the best level in which it has tasks, now or from a moment on: with the stamp that it keeps
-- beside the level. Whoever is popped with another stamp is out of date, and is passed over; so a lane never has to be
-- searched for, and who has rested joins the line without being looked at. Stamp 0: it does not stand there.

-- A packed lane: its kind, how many levels, which sets of more levels there are (1 even, 2 odd, 3 both), (level, stamp)
-- for each level, and then as much of the pace as its kind needs. Its best even and its best odd level are always among
-- them, and there are more in the sets only while it is full.
-- Most lanes were never visited, or have only good answers; it is they that a broad crawl has by the hundred thousand.
local WHOLE, CALM, FRESH = 0, 1, 2
local LEVEL_AT, MOST_LEVELS = 4, 16
local PARTS = {[WHOLE] = "<BI4dddI4dddI4dI4ddddd", [CALM] = "<I4dddI4dddddd", [FRESH] = "<ddI4"}
local PAIRS = {[0] = "<", "<i4I4", "<i4I4i4I4", "<i4I4i4I4i4I4"}
local RUNNING, PAUSED, DRAINING = 0, 1, 2
local LANES, QUEUE, LATE, LINE, MORE = P .. "lanes", P .. "q:", P .. "d:", P .. "r:", P .. "m:"

local lanes, touched, touches, not_before = {}, {}, 0, {}
-- Which sets of more levels a lane has; most have none.
local more_of = {}

local function pairs_of(levels)
  return PAIRS[levels] or "<" .. string.rep("i4I4", levels)
end

local function read_lane(name, packed)
  local kind, levels, more = byte(packed, 1, 3)
  local at = LEVEL_AT + 8 * levels
  -- Room for three levels from the start; what stands behind the last one means nothing.
  local l1, s1, l2, s2, l3, s3 = unpack_(pairs_of(min(levels, 3)), packed, LEVEL_AT)
  local lane
  if kind == CALM then
    local leased, wake, lowest, highest, places, interval, next_start, rest, slowed, latency, usual =
      unpack_(PARTS[CALM], packed, at)
    lane = {name, "", false, RUNNING, leased, wake, lowest, highest, places, interval, next_start, rest, 0, 0, 0, slowed,
      latency, usual, ALLOWANCE, 0, levels, l1, s1, l2, s2, l3, s3}
  elseif kind == FRESH then
    local lowest, highest, places = unpack_(PARTS[FRESH], packed, at)
    lane = {name, "", false, RUNNING, 0, 0, lowest, highest, places, lowest, 0, 0, 0, 0, 0, 0, 0, 0, ALLOWANCE, 0, levels,
      l1, s1, l2, s2, l3, s3}
  else
    lane = {name, "", false, unpack_(PARTS[WHOLE], packed, at)}
    lane[WHY] = sub(packed, lane[LEVELS])
    lane[LEVELS], lane[LEVELS + 1], lane[LEVELS + 2], lane[LEVELS + 3] = levels, l1, s1, l2
    lane[LEVELS + 4], lane[LEVELS + 5], lane[LEVELS + 6] = s2, l3, s3
  end
  for i = 4, levels do
    lane[LEVELS + 2 * i - 1], lane[LEVELS + 2 * i] = unpack_("<i4I4", packed, LEVEL_AT + 8 * i - 8)
  end
  lanes[name] = lane
  if more > 0 then more_of[lane] = more end
  return lane
end

local function pack_lane(lane)
  local levels = lane[LEVELS]
  local kind = WHOLE
  if lane[FAILURES] == 0 and lane[STATE] == RUNNING and lane[CREDIT] == ALLOWANCE and lane[WHY] == "" then
    local untouched = lane[NEXT] == 0 and lane[LEASED] == 0 and lane[WAKE] == 0 and lane[INTERVAL] == lane[FLOOR]
    kind = untouched and lane[LATENCY] == 0 and lane[SLOWED] == 0 and lane[REST] == 0 and FRESH or CALM
  end
  if kind == CALM and levels == 1 then
    -- As the next lines would say it, for the most usual lane.
    return pack_("<BHi4I4I4dddI4dddddd", CALM, 1, lane[LEVELS + 1], lane[LEVELS + 2], lane[LEASED], lane[WAKE], lane[FLOOR],
      lane[CEILING], lane[CONCURRENCY], lane[INTERVAL], lane[NEXT], lane[REST], lane[SLOWED], lane[LATENCY], lane[USUAL])
  end
  local head = pack_("<BBB", kind, levels, more_of[lane] or 0)
    .. pack_(pairs_of(levels), unpack(lane, LEVELS + 1, LEVELS + 2 * levels))
  if kind == CALM then
    return head .. pack_(PARTS[CALM], lane[LEASED], lane[WAKE], lane[FLOOR], lane[CEILING], lane[CONCURRENCY],
      lane[INTERVAL], lane[NEXT], lane[REST], lane[SLOWED], lane[LATENCY], lane[USUAL])
  elseif kind == FRESH then
    return head .. pack_(PARTS[FRESH], lane[FLOOR], lane[CEILING], lane[CONCURRENCY])
  end
  return head .. pack_(PARTS[WHOLE], unpack(lane, STATE, LEVELS - 1)) .. lane[WHY]
end

local function new_lane(name, pace)
  local lane = {name, "", false, RUNNING, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
  open_pace(lane, pace)
  lanes[name] = lane
  return lane
end

local needles = {}

-- Has the packed lane tasks in this level?
local function has_level(packed, level)
  local needle = needles[level]
  if not needle then
    needle = pack_("<i4", level)
    needles[level] = needle
  end
  local last = LEVEL_AT + 8 * byte(packed, 2)
  local at = find(packed, needle, LEVEL_AT, true)
  -- The same bytes may stand across a level and a stamp.
  while at and at < last and (at - LEVEL_AT) % 8 ~= 0 do at = find(packed, needle, at + 1, true) end
  return at and at < last
end

-- Bring lanes into this call's hands. One that is not known yet is opened with its pace: paces[name], or paces[1].
local function load_lanes(names, paces)
  local missing, asked = {}, {}
  for i = 1, #names do
    local name = names[i]
    if not lanes[name] and not asked[name] then
      asked[name] = true
      missing[#missing + 1] = name
    end
  end
  for from = 1, #missing, 1000 do
    local upto = min(#missing, from + 999)
    local packed = call("HMGET", LANES, unpack(missing, from, upto))
    for i = from, upto do
      local lane = packed[i - from + 1]
      if lane then
        read_lane(missing[i], lane)
      elseif paces then
        new_lane(missing[i], paces[missing[i]] or paces[1])
      end
    end
  end
end

local function touch(lane)
  if not lane[TOUCHED] then
    lane[TOUCHED] = true
    touches = touches + 1
    touched[touches] = lane
  end
end

-- Where the lane keeps a level; nil if it has no tasks there.
local function find_level(lane, level)
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do
    if lane[at] == level then return at end
  end
  return nil
end

local function more_key(lane, parity)
  return MORE .. parity .. ":" .. lane[NAME]
end

-- The lane is full: the worst level that is not the best of its parity goes to the others. It loses its place in line,
-- which it had for later. Gives where there is room for this level now, or nil if it went there itself.
local function make_room(lane, level)
  local best = {[level % 2] = level}
  for at = LEVELS + 1, LEVELS + 2 * MOST_LEVELS, 2 do
    local parity = lane[at] % 2
    if not best[parity] or lane[at] < best[parity] then best[parity] = lane[at] end
  end
  local worst, worst_at = best[level % 2] ~= level and level or nil, nil
  for at = LEVELS + 1, LEVELS + 2 * MOST_LEVELS, 2 do
    if lane[at] ~= best[lane[at] % 2] and (not worst or lane[at] > worst) then worst, worst_at = lane[at], at end
  end
  local parity, more = worst % 2, more_of[lane] or 0
  call("ZADD", more_key(lane, parity), worst, worst)
  if more % (2 * parity + 2) < parity + 1 then more_of[lane] = more + parity + 1 end
  return worst_at
end

local function open_level(lane, level)
  if find_level(lane, level) then return end
  local at = LEVELS + 2 * lane[LEVELS] + 1
  if lane[LEVELS] >= MOST_LEVELS then
    at = make_room(lane, level)
    if not at then return end
    call("ZREM", more_key(lane, level % 2), level)
  else
    lane[LEVELS] = lane[LEVELS] + 1
  end
  lane[at], lane[at + 1] = level, 0
end

-- There is room again: the best of the others comes in, of this parity if there is one.
local function take_in(lane, parity)
  for _ = 1, 2 do
    if more_of[lane] % (2 * parity + 2) >= parity + 1 then
      local level = tonumber(call("ZPOPMIN", more_key(lane, parity))[1])
      if level then
        local at = LEVELS + 2 * lane[LEVELS] + 1
        lane[at], lane[at + 1] = level, 0
        lane[LEVELS] = lane[LEVELS] + 1
        return
      end
      more_of[lane] = more_of[lane] - parity - 1
    end
    parity = 1 - parity
  end
end

local function close_level(lane, at)
  local last, parity = LEVELS + 2 * lane[LEVELS], lane[at] % 2
  lane[at], lane[at + 1] = lane[last - 1], lane[last]
  lane[last - 1], lane[last] = nil, nil
  lane[LEVELS] = lane[LEVELS] - 1
  if more_of[lane] then take_in(lane, parity) end
end

local ends = {}

-- The end of a queue's name. A number is turned into text once per call, not once per task.
local function end_of(level)
  local text = ends[level]
  if not text then
    text = ":" .. level
    ends[level] = text
  end
  return text
end

local function queue(lane, level)
  return QUEUE .. lane[NAME] .. end_of(level)
end

-- How many wait in the lane, but for those in more levels: they are counted by pages (more_levels.lua).
local function waiting_in(lane)
  local sum = call("ZCARD", LATE .. lane[NAME])
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do sum = sum + call("LLEN", queue(lane, lane[at])) end
  return sum
end

local function has_waiting(lane)
  return lane[LEVELS] > 0 or call("EXISTS", LATE .. lane[NAME]) == 1
end

-- A task waits at the end of its queue, or (due) until its time has come.
local function wait_in(lane, level, blob, due)
  touch(lane)
  if due > now then
    call("ZADD", LATE .. lane[NAME], due, pack_("<i4", level) .. blob)
    call("ZADD", P .. "due", "LT", due, lane[NAME])
    book.delayed = book.delayed + 1
  else
    call("RPUSH", queue(lane, level), blob)
    open_level(lane, level)
  end
end

local function many(command, key, list)
  for from = 1, #list, 1000 do call(command, key, unpack(list, from, min(#list, from + 999))) end
end

local lines, later = {}, {}
-- What lanes were popped from a line just now, and the level of that line.
local popped, popped_at = {}, nil
local LOOK = pack_("<i4I4", 0, 0)

-- Where the lane keeps the best level in which it may be served; and whether a better one is held up by a lack of
-- credit.
local function best_level(lane)
  local best, best_at, poor, rich
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do
    local level = lane[at]
    if level % 2 == 1 then
      if rich == nil then rich = credit(lane) >= 1 end
      if not rich and (not poor or level < poor) then poor = level end
    end
    if (level % 2 == 0 or rich) and (not best or level < best) then best, best_at = level, at end
  end
  return best_at, poor and (not best or poor < best)
end

-- Let the lane stand in line at a level from a moment on. Whoever stands there already need not come again, unless it
-- would be too late.
local function stand(lane, at, moment)
  if moment <= now then moment = 0 end
  if lane[at + 1] ~= 0 and lane[WAKE] <= moment then return end
  local level, entry = lane[at], popped[lane]
  if entry and popped_at == level then
    -- It was popped just now, so nobody else stands there with its stamp.
    lane[at + 1] = unpack_("<I4", entry)
  else
    book.turns = book.turns % 4294967295 + 1
    lane[at + 1] = book.turns
    entry = pack_("<I4", book.turns) .. lane[NAME]
  end
  lane[WAKE] = moment
  if moment == 0 then
    local line = lines[level]
    if line then line[#line + 1] = entry else lines[level] = {entry} end
  else
    -- Rather a millisecond early than late: then it is looked at once more.
    later[#later + 1] = string.format("%d", moment * 1000)
    later[#later + 1] = pack_("<i4", level) .. entry
  end
end

-- Let the lane stand in line at its best level if it may be served now, or from when on it may.
-- What comes of it is written by `write_lines`.
local function line_up(lane)
  local levels = lane[LEVELS]
  if levels == 0 or lane[STATE] == PAUSED or (levels == 1 and lane[LEVELS + 2] ~= 0) then return end
  local free = free_at(lane)
  if not free then return end
  if not_before[lane] then free = max(free, not_before[lane]) end
  local best_at, poor = best_level(lane)
  if best_at then stand(lane, best_at, free) end
  if poor then
    later[#later + 1] = max(free, credit_at(lane), now + 0.001) * 1000
    later[#later + 1] = LOOK .. lane[NAME]
  end
end

local function write_lines()
  for level, line in pairs(lines) do
    local length = 0
    for from = 1, #line, 1000 do
      length = call("RPUSH", LINE .. level, unpack(line, from, min(#line, from + 999)))
    end
    if length == #line then call("ZADD", P .. "levels", level, level) end
    woke = true
  end
  lines = {}
  if #later > 0 then
    many("ZADD", P .. "rest", later)
    later = {}
  end
end

-- lined: all of them stand in line already.
local function write_lanes(lined)
  local written = {}
  for i = 1, touches do
    local lane = touched[i]
    if not lined then line_up(lane) end
    written[2 * i - 1], written[2 * i] = lane[NAME], pack_lane(lane)
  end
  write_lines()
  many("HSET", LANES, written)
end
