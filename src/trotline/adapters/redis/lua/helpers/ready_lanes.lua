-- The queues of ready lanes; see job_lanes.lua for the keys.
--
-- uses clock: call now
-- uses job_counters: max min pack_ unpack_ P book woke many
-- uses pace: free_at credit credit_at
-- uses lane_sharing: FOREVER is_shared is_there claim wait_for yields_until
-- uses wake_lane: LOOK
-- uses shared_lanes: SHARED SPLIT touched touches change HEEDS bounds_of pack_shared wake_others
-- uses lane_pool: pool_of
-- uses route_queues: queue_of
-- uses pool_members: members sooner_lanes
-- uses job_lanes: LANES LINE not_before repaired pack_lane touch
-- exports: line_key levels_key join_line popped popped_at crowded probes_first_attempts line_up line_up_touched write_lines write_lanes

local LOOK_AGAIN, SOONEST = 5, 0.001

-- Lanes that go out through a proxy pool stand in lines of their own: a worker asks only for pools that it serves.
function line_key(level, pool)
  return pool and LINE .. pool .. ":" .. level or LINE .. level
end

function levels_key(pool)
  return pool and P .. "levels:" .. pool or P .. "levels"
end

local lines, later = {}, {}

-- The lane joins the line of its pool at this level, when the call ends.
function join_line(level, name, entry)
  local pool = pool_of(name)
  local by_level = lines[pool]
  if not by_level then
    by_level = {}
    lines[pool] = by_level
  end
  local line = by_level[level]
  if line then line[#line + 1] = entry else by_level[level] = {entry} end
end

-- What lanes were popped from a line just now, and the level of that line.
popped, popped_at = {}, nil

-- Is the lane probed, and has it tasks (in this queue) that have not failed before? Then the probe is one of them: a page
-- that always fails says little about the site.
function probes_first_attempts(lane, queue)
  if lane[FAILURES] < BREAKER then return false end
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do
    if lane[at] % 2 == 0 and queue_of(lane[at]) == queue then return true end
  end
  return false
end

-- Where the lane keeps the best level in which it may be served; and whether a better one is held up by a lack of
-- credit.
local function best_level(lane)
  local best, best_at, poor, rich
  if probes_first_attempts(lane, 0) then rich = false end
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

-- Queue the lane at a level from a time on.
local function enter(lane, at, moment)
  local level, entry = lane[at], popped[lane]
  if entry and popped_at == level then
    -- It was popped just now, so no other entry has its stamp. lease_ready_lanes.lua marks the lane if it has changed.
    lane[at + STAMP] = unpack_("<I4", entry)
  else
    touch(lane)
    book.turns = book.turns % 4294967295 + 1
    lane[at + STAMP] = book.turns
    entry = pack_("<I4", book.turns) .. lane[NAME]
  end
  if moment == 0 then
    join_line(level, lane[NAME], entry)
  else
    -- Rather a millisecond early than late: then it is looked at once more.
    later[#later + 1] = string.format("%d", moment * 1000)
    later[#later + 1] = pack_("<i4", level) .. entry
  end
end

-- The same; one that is queued already stays, unless that would be too late.
local function stand(lane, at, moment)
  if moment <= now then moment = 0 end
  if lane[at + STAMP] ~= 0 and lane[WAKE] <= moment then return end
  enter(lane, at, moment)
  lane[WAKE] = moment
end

-- Where the lane keeps the best level of each of its queues, and whether a better one is held up by a lack of credit.
local function best_levels(lane)
  local best, poor, rich = {}, {}, nil
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do
    local level = lane[at]
    local queue = queue_of(level)
    local held_up = false
    if level % 2 == 1 then
      if rich == nil then rich = credit(lane) >= 1 end
      held_up = not rich or probes_first_attempts(lane, queue)
    end
    local known = held_up and poor or best
    if not known[queue] or level < lane[known[queue]] then known[queue] = at end
  end
  for queue, at in pairs(poor) do
    if not best[queue] or lane[at] < lane[best[queue]] then return best, true end
  end
  return best, false
end

-- Each queue of the lane stands in line by itself. WAKE is the latest time at which one of them is queued.
local function stand_queues(lane, best, moment)
  if moment <= now then moment = 0 end
  local wake = lane[WAKE] > now and lane[WAKE] or 0
  local is_late = wake > moment
  if is_late then wake = moment end
  for _, at in pairs(best) do
    if is_late or lane[at + STAMP] == 0 then
      enter(lane, at, moment)
      wake = max(wake, moment)
    end
  end
  if wake ~= lane[WAKE] then
    touch(lane)
    lane[WAKE] = wake
  end
end

local function look_later(lane, moment)
  later[#later + 1] = string.format("%d", max(moment, now + SOONEST) * 1000)
  later[#later + 1] = LOOK .. lane[NAME]
end

local function any_left(lane)
  local claims = lane[CLAIMS]
  for at = 1, #claims, CLAIM_SIZE do
    if at ~= lane[MINE] and not is_there(claims, at) then return true end
  end
  return false
end

-- Lanes whose places, or all members of whose pool, may be taken by others.
crowded = {}

-- The same, but not before a member of its proxy pool is free. While all are out, the visit that ends first wakes the lane.
-- A lane that has to wait anyhow looks for a member when its own time has come.
local function with_members(lane, free)
  if not free or free > now or not pool_of(lane[NAME]) then return free end
  local due = members().free_from(lane[NAME])
  if not due or due > now + LOOK_AGAIN or (due > now and is_shared(lane)) then members().want(lane[NAME]) end
  if not due then
    crowded[#crowded + 1] = lane
    look_later(lane, now + LOOK_AGAIN)
  end
  return due and max(free, due)
end

-- From when on this job may be served there; nil while all places are taken. Where others are as well, it is written down
-- what we wait for: the job that gives a place back wakes us. No job does when a pace is in force no longer.
local function own_free_at(lane)
  if not is_shared(lane) then return with_members(lane, free_at(lane, HEEDS)) end
  local bounds, mine = bounds_of(lane[NAME]), lane[MINE]
  if any_left(lane) then claim(lane, bounds) end
  local free = free_at(lane, HEEDS)
  if not free and lane[LEASED] > (mine > 0 and lane[CLAIMS][mine + CLAIM_RUNS] or 0) then
    wait_for(lane, bounds, FOREVER)
    crowded[#crowded + 1] = lane
  elseif free and free > now then
    wait_for(lane, bounds, free)
  end
  change(lane)
  if not free or free > now + LOOK_AGAIN then look_later(lane, now + LOOK_AGAIN) end
  return with_members(lane, free and max(free, yields_until(lane)))
end

-- Queue the lane at its best level, from the time at which it may be served. again: also if it is queued already, as that
-- time may be earlier now. Written by `write_lines`.
function line_up(lane, again)
  local levels = lane[LEVELS]
  if levels == 0 or lane[STATE] == PAUSED or (levels == 1 and lane[LEVELS + 1 + STAMP] ~= 0 and not again) then return end
  local free = own_free_at(lane)
  if not free then return end
  if not_before[lane] then free = max(free, not_before[lane]) end
  local best_at, poor
  if SPLIT then
    best_at, poor = best_levels(lane)
    stand_queues(lane, best_at, free)
  else
    best_at, poor = best_level(lane)
    if best_at then stand(lane, best_at, free) end
  end
  if poor then look_later(lane, max(free, credit_at(lane))) end
end

-- The same for a lane that was touched: also sooner than it stands in line for, if a member of its proxy pool came back
-- (a settle has asked for `served_sooner` before).
function line_up_touched(lane)
  line_up(lane, lane[FREED] and sooner_lanes and sooner_lanes[lane[NAME]])
end

local function write_line(pool, level, line)
  local length = 0
  for from = 1, #line, 1000 do
    length = call("RPUSH", line_key(level, pool), unpack(line, from, min(#line, from + 999)))
  end
  if length == #line then
    call("ZADD", levels_key(pool), level, level)
    if pool then call("SADD", P .. "pools", pool) end
  end
  woke = true
end

function write_lines()
  for pool, by_level in pairs(lines) do
    for level, line in pairs(by_level) do write_line(pool, level, line) end
  end
  lines = {}
  if #later > 0 then
    many("ZADD", P .. "rest", later)
    later = {}
  end
end

-- lined: all of them are queued already.
function write_lanes(lined)
  local own, gone, shared = {}, {}, {}
  for i = 1, #repaired do line_up(repaired[i], true) end
  for i = 1, touches do
    local lane = touched[i]
    if lane[FREED] and is_shared(lane) then wake_others(lane) end
    if not lined then line_up_touched(lane) end
    if lane[TOUCHED] == 1 then
      local packed = pack_lane(lane)
      if packed then
        own[#own + 1] = lane[NAME]
        own[#own + 1] = packed
      elseif lane[KEPT] then
        gone[#gone + 1] = lane[NAME]
      end
    end
    if lane[CHANGED] then
      shared[#shared + 1] = lane[NAME]
      shared[#shared + 1] = pack_shared(lane)
    end
  end
  write_lines()
  many("HSET", LANES, own)
  many("HDEL", LANES, gone)
  many("HSET", SHARED, shared)
  if sooner_lanes then members().write() end
end
