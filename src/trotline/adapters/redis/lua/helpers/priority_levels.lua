-- The levels of a lane in which a job has tasks, and the tasks in them; see job_lanes.lua for the keys.
--
-- uses clock: call now
-- uses job_counters: pack_ P book
-- uses job_lanes: QUEUE LATE MORE most_levels more_of touch
-- uses route_queues: queue_of levels_of
-- exports: find_level open_level close_level end_of queue waiting_in has_waiting wait_in

-- Where the lane keeps a level; nil if it has no tasks there.
function find_level(lane, level)
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do
    if lane[at] == level then return at end
  end
  return nil
end

local function more_key(lane, parity)
  return MORE .. parity .. ":" .. lane[NAME]
end

-- Levels of one queue and parity; the best of each kind are always in the packed lane.
local function kind_of(level)
  return 2 * queue_of(level) + level % 2
end

-- The lane is full: the worst level that is not the best of its kind goes to the others. It loses its place in line,
-- which it had for later. Gives where there is room for this level now, or nil if it went there itself.
local function make_room(lane, level)
  local best = {[kind_of(level)] = level}
  for at = LEVELS + 1, LEVELS + 2 * most_levels, 2 do
    local kind = kind_of(lane[at])
    if not best[kind] or lane[at] < best[kind] then best[kind] = lane[at] end
  end
  local worst, worst_at = best[kind_of(level)] ~= level and level or nil, nil
  for at = LEVELS + 1, LEVELS + 2 * most_levels, 2 do
    if lane[at] ~= best[kind_of(lane[at])] and (not worst or lane[at] > worst) then worst, worst_at = lane[at], at end
  end
  local parity, more = worst % 2, more_of[lane] or 0
  call("ZADD", more_key(lane, parity), worst, worst)
  if more % (2 * parity + 2) < parity + 1 then more_of[lane] = more + parity + 1 end
  return worst_at
end

function open_level(lane, level)
  if find_level(lane, level) then return end
  local at = LEVELS + 2 * lane[LEVELS] + 1
  if lane[LEVELS] >= most_levels then
    at = make_room(lane, level)
    if not at then return end
    call("ZREM", more_key(lane, level % 2), level)
  else
    lane[LEVELS] = lane[LEVELS] + 1
  end
  lane[at], lane[at + STAMP] = level, 0
end

-- The best of the others, which are no others then: of this queue if there is one.
local function pop_more(lane, parity, queue)
  local key = more_key(lane, parity)
  local first, last = levels_of(queue)
  local level = call("ZRANGEBYSCORE", key, first, last, "LIMIT", 0, 1)[1]
  if not level then return tonumber(call("ZPOPMIN", key)[1]) end
  call("ZREM", key, level)
  return tonumber(level)
end

-- There is room again: the best of the others comes in, of this parity if there is one.
local function take_in(lane, parity, queue)
  for _ = 1, 2 do
    if more_of[lane] % (2 * parity + 2) >= parity + 1 then
      local level = pop_more(lane, parity, queue)
      if level then
        local at = LEVELS + 2 * lane[LEVELS] + 1
        lane[at], lane[at + STAMP] = level, 0
        lane[LEVELS] = lane[LEVELS] + 1
        return
      end
      more_of[lane] = more_of[lane] - parity - 1
    end
    parity = 1 - parity
  end
end

function close_level(lane, at)
  local last, closed = LEVELS + 2 * lane[LEVELS] - 1, lane[at]
  lane[at], lane[at + STAMP] = lane[last], lane[last + STAMP]
  lane[last], lane[last + STAMP] = nil, nil
  lane[LEVELS] = lane[LEVELS] - 1
  if more_of[lane] then take_in(lane, closed % 2, queue_of(closed)) end
end

local ends = {}

-- The end of a queue's name. A number is turned into text once per call, not once per task.
function end_of(level)
  local text = ends[level]
  if not text then
    text = ":" .. level
    ends[level] = text
  end
  return text
end

function queue(lane, level)
  return QUEUE .. lane[NAME] .. end_of(level)
end

-- How many wait in the lane, but for those in more levels: they are counted by pages (count_waiting_in_levels.lua).
function waiting_in(lane)
  local sum = call("ZCARD", LATE .. lane[NAME])
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do sum = sum + call("LLEN", queue(lane, lane[at])) end
  return sum
end

function has_waiting(lane)
  return lane[LEVELS] > 0 or call("EXISTS", LATE .. lane[NAME]) == 1
end

-- A task waits at the end of its queue, or (due) until its time has come.
function wait_in(lane, level, blob, due)
  touch(lane)
  if due > now then
    call("ZADD", LATE .. lane[NAME], due, pack_("<i4", level) .. blob)
    call("ZADD", P .. "due", "LT", due, lane[NAME])
    lane[DELAYED] = true
    book.delayed = book.delayed + 1
  else
    call("RPUSH", queue(lane, level), blob)
    open_level(lane, level)
  end
end
