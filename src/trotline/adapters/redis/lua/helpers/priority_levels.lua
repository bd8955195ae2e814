-- The levels of a lane in which a job has tasks, and the tasks in them; see job_lanes.lua for the keys.
--
-- uses clock: call now
-- uses job_books: pack_ P book
-- uses job_lanes: QUEUE LATE MORE more_of touch
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

function open_level(lane, level)
  if find_level(lane, level) then return end
  local at = LEVELS + 2 * lane[LEVELS] + 1
  if lane[LEVELS] >= MOST_LEVELS then
    at = make_room(lane, level)
    if not at then return end
    call("ZREM", more_key(lane, level % 2), level)
  else
    lane[LEVELS] = lane[LEVELS] + 1
  end
  lane[at], lane[at + STAMP] = level, 0
end

-- There is room again: the best of the others comes in, of this parity if there is one.
local function take_in(lane, parity)
  for _ = 1, 2 do
    if more_of[lane] % (2 * parity + 2) >= parity + 1 then
      local level = tonumber(call("ZPOPMIN", more_key(lane, parity))[1])
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
  local last, parity = LEVELS + 2 * lane[LEVELS] - 1, lane[at] % 2
  lane[at], lane[at + STAMP] = lane[last], lane[last + STAMP]
  lane[last], lane[last + STAMP] = nil, nil
  lane[LEVELS] = lane[LEVELS] - 1
  if more_of[lane] then take_in(lane, parity) end
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
