-- Lanes: one string each, read once per call and written once at its end.
--
--   P lanes         hash  lane -> its pace, and the levels in which tasks wait (packed, see HEAD)
--   P q:LANE:LEVEL  list  tasks that wait, first come first served. LEVEL is priority * 2, and 1 more for retries that
--                         need credit
--   P d:LANE        zset  tasks that are not due yet (level and task) -> due
--   P due           zset  lane -> due time of its first delayed task
--   P r:LEVEL       list  lanes that may be served in this level, who waited longest first: stamp (4 bytes) and name
--   P levels        zset  the levels that have such a list
--   P rest          zset  lane -> when to look at it again, in milliseconds
--
-- A lane stands in line at the best level in which it has tasks, and at most once at any level: with the stamp that it
-- keeps beside the level. Whoever is popped with another stamp is out of date, and is passed over; so a lane never has
-- to be searched for in a list. Stamp 0: it does not stand there.

local HEAD = "<BI4dddI4dddI4dI4dddddH"
local FORMS = {[0] = HEAD, [1] = HEAD .. "i4I4", [2] = HEAD .. "i4I4i4I4", [3] = HEAD .. "i4I4i4I4i4I4"}
local COUNT_AT, LEVEL_AT = 114, 116
local RUNNING, PAUSED, DRAINING = 0, 1, 2
local LANES, QUEUE, LATE, LINE = P .. "lanes", P .. "q:", P .. "d:", P .. "r:"

local lanes, touched, touches, not_before = {}, {}, 0, {}

local function form(levels)
  local known = FORMS[levels]
  if not known then
    known = HEAD .. string.rep("i4I4", levels)
    FORMS[levels] = known
  end
  return known
end

local function levels_of(packed)
  local low, high = byte(packed, COUNT_AT, COUNT_AT + 1)
  return low + 256 * high
end

local function read_lane(name, packed)
  local levels = levels_of(packed)
  local lane = {name, "", false, unpack_(form(levels), packed)}
  local last = LEVELS + 2 * levels + 1
  if lane[last] <= #packed then lane[WHY] = sub(packed, lane[last]) end
  lane[last] = nil
  lanes[name] = lane
  return lane
end

local function new_lane(name, pace)
  local lane = {name, "", false, RUNNING, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
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
  local last = LEVEL_AT + 8 * levels_of(packed)
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

local function open_level(lane, level)
  if find_level(lane, level) then return end
  local at = LEVELS + 2 * lane[LEVELS] + 1
  lane[at], lane[at + 1] = level, 0
  lane[LEVELS] = lane[LEVELS] + 1
end

local function close_level(lane, at)
  local last = LEVELS + 2 * lane[LEVELS]
  lane[at], lane[at + 1] = lane[last - 1], lane[last]
  lane[last - 1], lane[last] = nil, nil
  lane[LEVELS] = lane[LEVELS] - 1
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

local function waiting_in(lane)
  local sum = call("ZCARD", LATE .. lane[NAME])
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do sum = sum + call("LLEN", queue(lane, lane[at])) end
  return sum
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

local lines, looks = {}, {}

-- The best level in which the lane may be served, and where the lane keeps it; and when to look again, if a better one
-- is held up by a lack of credit.
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
  if poor and (not best or poor < best) then return best, best_at, max(credit_at(lane), now + 0.001) end
  return best, best_at, nil
end

-- Let the lane stand in line at its best level if it may be served now, or be looked at again when it may.
-- What comes of it is written by `write_lines`.
local function line_up(lane)
  if lane[LEVELS] == 0 or lane[STATE] == PAUSED then return end
  local look = free_at(lane)
  if not look then return end
  local later = not_before[lane]
  if later then look = max(look, later) end
  if look <= now then
    local level, at
    level, at, look = best_level(lane)
    if level and lane[at + 1] == 0 then
      book.turns = book.turns % 4294967295 + 1
      lane[at + 1] = book.turns
      local line = lines[level]
      local entry = pack_("<I4", book.turns) .. lane[NAME]
      if line then line[#line + 1] = entry else lines[level] = {entry} end
    end
  end
  if look then
    -- Rather a millisecond early: then it is looked at once more.
    look = floor(look * 1000)
    if lane[WAKE] == 0 or lane[WAKE] > look then
      lane[WAKE] = look
      looks[#looks + 1] = string.format("%d", look)
      looks[#looks + 1] = lane[NAME]
    end
  end
end

local function write_lines()
  for level, line in pairs(lines) do
    local before = #line
    local length = 0
    for from = 1, before, 1000 do
      length = call("RPUSH", LINE .. level, unpack(line, from, min(before, from + 999)))
    end
    if length == before then call("ZADD", P .. "levels", level, level) end
    woke = true
  end
  lines = {}
  if #looks > 0 then
    many("ZADD", P .. "rest", looks)
    looks = {}
  end
end

-- lined: all of them stand in line already.
local function write_lanes(lined)
  local written = {}
  for i = 1, touches do
    local lane = touched[i]
    if not lined then line_up(lane) end
    local levels = lane[LEVELS]
    written[2 * i - 1] = lane[NAME]
    local packed = pack_(form(levels), unpack(lane, STATE, LEVELS + 2 * levels))
    written[2 * i] = lane[WHY] == "" and packed or packed .. lane[WHY]
  end
  write_lines()
  many("HSET", LANES, written)
end
