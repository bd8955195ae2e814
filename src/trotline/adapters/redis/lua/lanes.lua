-- Lanes: one string each, read once per call and written once at its end.
--
--   P lanes         hash  lane -> pace, counts and the levels in which tasks wait (packed, see HEAD)
--   P q:LANE:LEVEL  list  tasks that wait, first come first served. LEVEL is priority * 2, and 1 more for retries that
--                         need credit
--   P d:LANE        zset  tasks that are not due yet (level and task) -> due
--   P due           zset  lane -> due time of its first delayed task
--   P ready         zset  lane that may be served now -> best priority, then who waited longest for a turn
--   P rest          zset  lane that may be served later -> from when on

local HEAD = "<BBI4I4ddddI4dddI4dI4dddddH"
local FORMS = {[0] = HEAD, [1] = HEAD .. "i4I4", [2] = HEAD .. "i4I4i4I4"}
local IDLE, READY, RESTING, FULL = 0, 1, 2, 3
local RUNNING, PAUSED, DRAINING = 0, 1, 2
local TURNS = 2 ^ 40
local LANES, QUEUE, LATE = P .. "lanes", P .. "q:", P .. "d:"

local lanes, touched, marked, not_before = {}, {}, {}, {}

local function form(levels)
  local known = FORMS[levels]
  if not known then
    known = HEAD .. string.rep("i4I4", levels)
    FORMS[levels] = known
  end
  return known
end

local function read_lane(name, packed)
  local low, high = byte(packed, 127, 128)
  local levels = low + 256 * high
  local lane = {name, "", unpack_(form(levels), packed)}
  local last = LEVELS + 2 * levels + 1
  if lane[last] <= #packed then lane[WHY] = sub(packed, lane[last]) end
  lane[last] = nil
  lanes[name] = lane
  return lane
end

local function new_lane(name, pace)
  book.turns = book.turns + 1
  local lane = {name, "", IDLE, RUNNING, 0, 0, book.turns, 0}
  open_pace(lane, pace)
  lane[LEVELS] = 0
  lanes[name] = lane
  return lane
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
  if not marked[lane] then
    marked[lane] = true
    touched[#touched + 1] = lane
  end
end

-- So many tasks more (or less) wait in a level. Levels stand in order, and one without tasks is not kept.
local function count_level(lane, level, count)
  local last = LEVELS + 2 * lane[LEVELS]
  local at = LEVELS + 1
  while at <= last and lane[at] < level do at = at + 2 end
  if at <= last and lane[at] == level then
    lane[at + 1] = lane[at + 1] + count
    if lane[at + 1] > 0 then return end
    for i = at, last do lane[i] = lane[i + 2] end
    lane[LEVELS] = lane[LEVELS] - 1
  elseif count > 0 then
    for i = last, at, -1 do lane[i + 2] = lane[i] end
    lane[at], lane[at + 1] = level, count
    lane[LEVELS] = lane[LEVELS] + 1
  end
end

local function waiting_in(lane)
  local sum = lane[DELAYED]
  for at = LEVELS + 2, LEVELS + 2 * lane[LEVELS], 2 do sum = sum + lane[at] end
  return sum
end

local function queue(lane, level)
  return QUEUE .. lane[NAME] .. ":" .. level
end

-- A task waits at the end of its queue, or (due) until its time has come.
local function wait_in(lane, level, blob, due)
  touch(lane)
  if due > now then
    call("ZADD", LATE .. lane[NAME], due, pack_("<i4", level) .. blob)
    call("ZADD", P .. "due", "LT", due, lane[NAME])
    lane[DELAYED] = lane[DELAYED] + 1
    book.delayed = book.delayed + 1
  else
    call("RPUSH", queue(lane, level), blob)
    count_level(lane, level, 1)
  end
end

-- Where the lane belongs now: its place, and its score there.
local function placement(lane)
  if lane[STATE] == PAUSED then return FULL, 0 end
  local levels = lane[LEVELS]
  if levels == 0 then return IDLE, 0 end
  local free = free_at(lane)
  if not free then return FULL, 0 end
  local best = lane[LEVELS + 1]
  if best % 2 == 1 and credit(lane) < 1 then
    local at = LEVELS + 3
    while at < LEVELS + 2 * levels and lane[at] % 2 == 1 do at = at + 2 end
    if at < LEVELS + 2 * levels then
      best = lane[at]
    else
      free = max(free, credit_at(lane))
    end
  end
  if not_before[lane] then free = max(free, not_before[lane]) end
  if free > now then return RESTING, free end
  return READY, floor(best / 2) * TURNS + lane[TURN]
end

local moves = {}

local function move(key, score, name)
  local list = moves[key]
  if not list then
    list = {}
    moves[key] = list
  end
  if score then list[#list + 1] = score end
  list[#list + 1] = name
end

-- Put a lane where it belongs now. What is moved is written by `write_places`.
local function place(lane)
  local was, score = lane[PLACE], lane[SCORE]
  local is, new = placement(lane)
  if is == was and new == score then return end
  if was == READY and is ~= READY then move("-ready", nil, lane[NAME]) end
  if was == RESTING and is ~= RESTING then move("-rest", nil, lane[NAME]) end
  if is == READY then
    if was ~= READY then woke = true end
    move("+ready", new, lane[NAME])
  elseif is == RESTING then
    move("+rest", new, lane[NAME])
  end
  lane[PLACE], lane[SCORE] = is, new
end

local function many(command, key, list)
  for from = 1, #list, 1000 do call(command, key, unpack(list, from, min(#list, from + 999))) end
end

local function write_places()
  if moves["-ready"] then many("ZREM", P .. "ready", moves["-ready"]) end
  if moves["-rest"] then many("ZREM", P .. "rest", moves["-rest"]) end
  if moves["+ready"] then many("ZADD", P .. "ready", moves["+ready"]) end
  if moves["+rest"] then many("ZADD", P .. "rest", moves["+rest"]) end
  moves = {}
end

local function write_lanes()
  local written = {}
  for i = 1, #touched do
    local lane = touched[i]
    place(lane)
    local levels = lane[LEVELS]
    written[2 * i - 1] = lane[NAME]
    written[2 * i] = pack_(form(levels), unpack(lane, PLACE, LEVELS + 2 * levels)) .. lane[WHY]
  end
  write_places()
  many("HSET", LANES, written)
end
