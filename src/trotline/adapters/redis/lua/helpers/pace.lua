-- The rate limit of a lane: a port of rules/pace.py.
-- A lane is an array; lua_layouts.py names its fields. shared_lanes.lua and job_lanes.lua keep it in two strings.
--
-- uses clock: now
-- uses job_counters: max min
-- exports: open_pace shortest robots_known allowed reserve free_at given_up forgive failing credit spend credit_at

function open_pace(lane, bounds)
  lane[FLOOR], lane[CEILING], lane[CONCURRENCY] = bounds[BOUND_FLOOR], bounds[BOUND_CEILING], bounds[BOUND_CONCURRENCY]
  lane[INTERVAL] = lane[FLOOR]
  lane[WHY], lane[NEXT], lane[REST], lane[FAILURES], lane[SINCE], lane[RESTS] = "", 0, 0, 0, 0, 0
  lane[SLOWED], lane[LATENCY], lane[USUAL], lane[TROUBLE] = 0, 0, 0, 0
  lane[CREDIT], lane[CREDITED] = RETRY_ALLOWANCE, now
  lane[LIMIT], lane[SURE], lane[LOST], lane[PHASE], lane[ANSWERS] = 0, 0, 0, 0, 0
  lane[LAST_ANSWERS], lane[LAST_PHASE], lane[ASKED], lane[ASKED_AT], lane[OLDER] = 0, 0, 0, 0, 0
end

-- The interval at full speed: by the bounds in force, and by robots.txt within them.
function shortest(lane)
  return max(lane[FLOOR], min(lane[ASKED], lane[CEILING]))
end

function robots_known(lane)
  return lane[ASKED_AT] > 0 and now < lane[ASKED_AT] + ROBOTS_GOOD_FOR
end

-- Visits at the same time. If the lane has to prove that it answers, one probe beside those that began before its rest. For a
-- job that heeds robots.txt, one until it is known how often it may be asked.
function allowed(lane, heeds)
  if heeds and not robots_known(lane) then return 1 end
  if lane[RESTS] > 0 or lane[FAILURES] >= BREAKER then return min(lane[CONCURRENCY], lane[OLDER] + 1) end
  return lane[CONCURRENCY]
end

local function ahead(lane)
  return lane[LIMIT] > 0 and NEAR or HORIZON
end

-- The number of starts within the horizon, and the first of them. The caller stores the next.
function reserve(lane, wanted, heeds)
  local count = allowed(lane, heeds) - lane[LEASED]
  if wanted < count then count = wanted end
  local first, latest = now, now + ahead(lane)
  if lane[NEXT] > first then first = lane[NEXT] end
  if lane[REST] > first then first = lane[REST] end
  local start, starts, interval = first, 0, lane[INTERVAL]
  while starts < count and start <= latest do
    starts = starts + 1
    start = start + interval
  end
  if starts > 0 and lane[LIMIT] > 0 and now > max(lane[NEXT], lane[REST]) + PAUSE then
    lane[PHASE], lane[ANSWERS] = now, 0
  end
  return starts, first
end

-- From when on the lane may hand out a start; nil while all its places are taken.
function free_at(lane, heeds)
  if lane[LEASED] >= allowed(lane, heeds) then return nil end
  local rest, free = lane[REST], lane[NEXT] - ahead(lane)
  if rest > free then return rest end
  return free
end

-- Why the lane is given up: it has only failed, or only said "too fast", for longer than we are patient. nil: it is not.
function given_up(lane, patience)
  if lane[SINCE] == 0 or now - lane[SINCE] <= patience then return nil end
  if lane[FAILURES] >= BREAKER then
    return string.format("unreachable: lane given up after %.0f s of failures only", patience)
  end
  if lane[RESTS] >= BREAKER then
    return string.format("throttled: lane given up after %.0f s of rate limiting only", patience)
  end
  return nil
end

function forgive(lane)
  lane[FAILURES], lane[SINCE], lane[RESTS], lane[OLDER] = BREAKER - 1, 0, 0, 0
end

function failing(lane)
  return lane[TROUBLE] > FAILING
end

-- Retries the lane may start now. Only a failing lane has to count them.
function credit(lane)
  if not failing(lane) then return UNCAPPED end
  return min(RETRY_ALLOWANCE, lane[CREDIT] + RETRY_DRIP * max(0, now - lane[CREDITED]))
end

function spend(lane, fresh, retries, share)
  if not failing(lane) then return end
  lane[CREDIT], lane[CREDITED] = min(RETRY_ALLOWANCE, credit(lane) + share * fresh) - retries, now
end

function credit_at(lane)
  return now + max(0, 1 - credit(lane)) / RETRY_DRIP
end
