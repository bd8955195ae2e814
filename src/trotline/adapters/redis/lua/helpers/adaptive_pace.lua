-- Adaptive pace of a lane: a port of rules/adaptive_pace.py.
--
-- uses clock: now
-- uses job_counters: max min
-- uses pace: shortest failing
-- exports: learn smoothed is_known_delay

local FAILED = {broken = true, unreachable = true, blocked = true}

-- At most one step a second: many visits in flight report the same problem.
local function slower(lane, factor, least)
  if now < lane[SLOWED] + 1 then return end
  lane[INTERVAL] = max(lane[INTERVAL], min(lane[CEILING], max(lane[INTERVAL], least) * factor))
  lane[SLOWED] = now
end

-- Does this Crawl-delay change nothing, where one was read at that time? A lane may have several origins: the longest counts.
function is_known_delay(known, known_at, asked)
  return known_at > 0 and now < known_at + ROBOTS_GOOD_FOR
    and (asked < known or (asked == known and now < known_at + ROBOTS_AGAIN))
end

-- The Crawl-delay of robots.txt.
local function robots_asked(lane, asked)
  if is_known_delay(lane[ASKED], lane[ASKED_AT], asked) then return end
  local longer, before = asked > lane[ASKED], lane[INTERVAL]
  lane[ASKED], lane[ASKED_AT] = asked, now
  local interval = max(before, shortest(lane))
  if not longer or interval == before then return end
  -- This visit may have waited for robots.txt itself before it asked for its page: count from now.
  lane[INTERVAL], lane[NEXT] = interval, max(lane[NEXT] + interval - before, now + interval)
end

-- How far it has come on its way back to the limit, which is at 1.
local function calm(lane)
  local way = SHORTEST_CALM
  if lane[SURE] == 1 then way = min(LONGEST_CALM, max(SHORTEST_CALM, CALM_FOR * lane[LOST])) end
  return min((now - lane[PHASE]) / way, CALMEST)
end

-- The interval that a lane comes back to: below its limit at first, at the limit when it was calm for a while, and then
-- beyond it, first slowly and then faster.
local function target(lane)
  if lane[LIMIT] == 0 then return 0 end
  if lane[LOST] == 0 then return lane[INTERVAL] end
  local since = calm(lane) - 1
  return min(lane[CEILING], lane[LIMIT] / (1 + DIP * since * since * since))
end

local function healed(lane)
  if lane[LIMIT] > 0 and lane[LOST] == 0 then
    lane[LOST], lane[PHASE], lane[ANSWERS] = max(now - lane[PHASE], INSTANT), now, 0
  end
  lane[FAILURES], lane[SINCE], lane[RESTS], lane[WHY], lane[OLDER] = 0, 0, 0, "", 0
end

local function counted(lane)
  local was_failing = failing(lane)
  lane[TROUBLE] = lane[TROUBLE] > NO_TROUBLE and lane[TROUBLE] * (1 - FORGET) or 0
  lane[ANSWERS] = lane[LIMIT] > 0 and lane[ANSWERS] + 1 or 0
  if was_failing and not failing(lane) then lane[CREDIT], lane[CREDITED] = RETRY_ALLOWANCE, now end
  local full = shortest(lane)
  if lane[LIMIT] > 0 and lane[LOST] > 0 and lane[INTERVAL] == full and full >= target(lane) then
    -- At full speed, and the site has nothing against it.
    lane[LIMIT], lane[LOST], lane[ANSWERS], lane[LAST_ANSWERS], lane[LAST_PHASE] = 0, 0, 0, 0, 0
  end
end

-- The averages after these answers, as in `answered`; nil if the lane becomes slower by them.
function smoothed(latency, usual_, tooks, first, last)
  for i = first, last do
    local took = tooks[i]
    latency = latency == 0 and took or latency + (took - latency) * LATENCY_WEIGHT
    usual_ = usual_ == 0 and took or usual_ + (took - usual_) * USUAL_WEIGHT
    if latency > RISING * usual_ + JITTER then return nil end
  end
  return latency, usual_
end

local function answered(lane, took)
  local latency, usual_ = lane[LATENCY], lane[USUAL]
  latency = latency == 0 and took or latency + (took - latency) * LATENCY_WEIGHT
  usual_ = usual_ == 0 and took or usual_ + (took - usual_) * USUAL_WEIGHT
  lane[LATENCY], lane[USUAL] = latency, usual_
  -- Ignore answers to requests from before the rest.
  if (lane[FAILURES] > 0 or lane[RESTS] > 0) and now >= lane[REST] then healed(lane) end
  if lane[LIMIT] > 0 or lane[TROUBLE] > 0 then counted(lane) end
  if latency > RISING * usual_ + JITTER then
    -- Gently, from where it is: a lane without a noticeable interval is slowed by its own latency already.
    slower(lane, SLOWER_BY_LATENCY, 0)
  elseif lane[INTERVAL] ~= lane[FLOOR] or lane[ASKED] > lane[FLOOR] or lane[LIMIT] > 0 then
    -- Of nearly all lanes it is the shortest there is, and stays so.
    lane[INTERVAL] = max(shortest(lane), lane[INTERVAL] * RECOVER, target(lane))
  end
end

-- The limit by what the site has admitted, and whether that is certain; see rules/adaptive_pace.py.
local function measured(lane, old, phase)
  local answers, last = lane[ANSWERS], lane[LAST_ANSWERS]
  local slowest = (phase + lane[LOST]) / max(1, answers)
  local more, longer = answers - last, phase - lane[LAST_PHASE]
  if answers < ENOUGH or last == 0 or longer < LONGER_PHASE * lane[LAST_PHASE] then
    local guess = old * 2
    if answers >= ENOUGH and slowest < guess then return slowest, 1 end
    return guess, 0
  end
  local found_ = more > 0 and longer / more or slowest
  return max(min(found_, slowest), old * NEXT_GUESS), 1
end

-- It was too fast: another limit, and a phase that has ended.
local function limited(lane, ban)
  local old, phase = lane[INTERVAL], now - lane[PHASE]
  local limit_, sure
  if lane[LIMIT] == 0 then
    limit_, sure = max(old, SLOWEST_STEP) * FIRST_GUESS, ban and 1 or 0
  elseif ban then
    -- A ban, which only shows that this was too fast.
    limit_, sure = old / BAN_LIMIT, 1
  elseif lane[LOST] > 0 and calm(lane) >= 1 then
    limit_, sure = min(old / (1 - DIP), max(old * NEXT_GUESS, phase / max(1, lane[ANSWERS]))), 1
  else
    limit_, sure = measured(lane, old, phase)
  end
  lane[LAST_ANSWERS] = lane[LOST] > 0 and lane[ANSWERS] or 0
  lane[LAST_PHASE] = lane[LOST] > 0 and phase or 0
  lane[LIMIT], lane[SURE] = min(limit_, lane[CEILING]), sure
  lane[INTERVAL] = max(old, min(limit_ / (1 - DIP), lane[CEILING]))
  lane[LOST], lane[PHASE], lane[ANSWERS], lane[SLOWED] = 0, now, 0, now
end

local function throttled(lane, asked, chance)
  local why = asked ~= 0 and string.format("rate limited: Retry-After %.0f s", asked) or "rate limited"
  if now < lane[REST] then
    -- Requested before the rest began.
    if now + asked > lane[REST] then lane[REST], lane[WHY] = now + asked, why end
    return
  end
  local rest = asked ~= 0 and asked or THROTTLE_REST * (1 + chance)
  if lane[RESTS] == 0 then
    limited(lane, false)
  else
    -- A probe: one visit alone cannot have been too fast.
    rest = max(rest, min(LONGEST_REST, THROTTLE_REST * 2 ^ min(lane[RESTS], DOUBLINGS)) * (1 + REST_SPREAD * chance))
  end
  -- With those that end in this call: `run` takes them away.
  lane[RESTS], lane[OLDER] = lane[RESTS] + 1, lane[LEASED]
  if lane[SINCE] == 0 then lane[SINCE] = now end
  lane[REST], lane[WHY] = now + rest, why
end

local function failed(lane, kind, asked, chance)
  if kind ~= "blocked" then slower(lane, SLOWER_BY_FAILURE, SLOWEST_STEP) end
  lane[FAILURES] = lane[FAILURES] + 1
  if lane[SINCE] == 0 then lane[SINCE] = now end
  lane[TROUBLE] = lane[TROUBLE] + (1 - lane[TROUBLE]) * FORGET
  if lane[FAILURES] < BREAKER or now < lane[REST] then return end
  if kind == "blocked" and lane[RESTS] == 0 then limited(lane, true) end
  local rest = min(LONGEST_REST, FIRST_REST * 2 ^ min(lane[RESTS], DOUBLINGS)) * (1 + REST_SPREAD * chance)
  lane[RESTS], lane[REST], lane[OLDER] = lane[RESTS] + 1, now + max(rest, asked), lane[LEASED]
  -- A site that blocks a whole pool opens the breaker before there are as many failures.
  lane[WHY] = kind == "blocked" and "blocked by the site" or string.format("%d failures in a row", lane[FAILURES])
end

-- Apply a visit's feedback to the lane. chance in [0, 1) spreads the ends of rests.
function learn(lane, kind, took, rest, interval, chance, robots)
  if robots or interval > 0 then robots_asked(lane, interval) end
  if kind == "ok" then
    answered(lane, took)
  elseif kind == "throttled" then
    throttled(lane, rest, chance)
  elseif FAILED[kind] then
    failed(lane, kind, rest, chance)
  elseif kind ~= "refused" then
    answered(lane, took)
  end
end
