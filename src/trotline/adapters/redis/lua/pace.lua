-- When a lane may be asked, and how its answers change that: rules/pace.py, word for word.
-- A lane is an array; the numbers below are the places of its fields (lanes.lua keeps it in one string).

local NAME, WHY, TOUCHED, STATE, LEASED, WAKE = 1, 2, 3, 4, 5, 6
local FLOOR, CEILING, CONCURRENCY, INTERVAL, NEXT, REST = 7, 8, 9, 10, 11, 12
local FAILURES, SINCE, RESTS, SLOWED, LATENCY, USUAL, CREDIT, CREDITED, LEVELS = 13, 14, 15, 16, 17, 18, 19, 20, 21

local max, min = math.max, math.min

local HORIZON = 1
local BREAKER = 10
local FIRST_REST, LONGEST_REST, THROTTLE_REST = 5, 600, 2
local SLOWEST_STEP = 0.01
local ALLOWANCE, DRIP = 10, 0.1
local FAILED = {broken = true, unreachable = true, blocked = true}

local function open_pace(lane, pace)
  lane[FLOOR], lane[CEILING], lane[CONCURRENCY], lane[INTERVAL] = pace[1], pace[2], pace[3], pace[1]
  lane[NEXT], lane[REST], lane[FAILURES], lane[SINCE], lane[RESTS] = 0, 0, 0, 0, 0
  lane[SLOWED], lane[LATENCY], lane[USUAL], lane[CREDIT], lane[CREDITED] = 0, 0, 0, ALLOWANCE, now
end

-- Other bounds, from now on: what is reserved stays reserved.
local function repace(lane, pace)
  local later = max(0, pace[1] - lane[INTERVAL])
  lane[FLOOR], lane[CEILING], lane[CONCURRENCY], lane[INTERVAL] = pace[1], pace[2], pace[3], pace[1]
  lane[NEXT] = min(lane[NEXT] + later, now + HORIZON + pace[1])
  lane[SLOWED] = 0
end

local function allowed(lane)
  if lane[FAILURES] >= BREAKER then return 1 end
  return lane[CONCURRENCY]
end

-- How many starts there are within the horizon, and the first of them. Spending them is `spend_starts`.
local function reserve(lane, wanted)
  local count = allowed(lane) - lane[LEASED]
  if wanted < count then count = wanted end
  local first, until_ = now, now + HORIZON
  if lane[NEXT] > first then first = lane[NEXT] end
  if lane[REST] > first then first = lane[REST] end
  local start, starts, interval = first, 0, lane[INTERVAL]
  while starts < count and start <= until_ do
    starts = starts + 1
    start = start + interval
  end
  return starts, first
end

-- From when on the lane may hand out a start; nil while all its places are taken.
local function free_at(lane)
  if lane[LEASED] >= allowed(lane) then return nil end
  local rest, free = lane[REST], lane[NEXT] - HORIZON
  if rest > free then return rest end
  return free
end

-- Many visits in flight bring the same bad news: one step a second, or they would multiply.
local function slower(lane, factor, least)
  if now < lane[SLOWED] + 1 then return end
  lane[INTERVAL] = max(lane[INTERVAL], min(lane[CEILING], max(lane[INTERVAL], least) * factor))
  lane[SLOWED] = now
end

local function answered(lane, took)
  local latency, usual = lane[LATENCY], lane[USUAL]
  latency = latency == 0 and took or latency + (took - latency) * 0.2
  usual = usual == 0 and took or usual + (took - usual) * 0.02
  lane[LATENCY], lane[USUAL] = latency, usual
  if latency > 2 * usual + 0.05 then
    slower(lane, 1.1, 0)
  else
    local interval, floor_ = lane[INTERVAL] * 0.98, lane[FLOOR]
    lane[INTERVAL] = interval > floor_ and interval or floor_
  end
  if lane[FAILURES] > 0 then lane[WHY] = "" end
  lane[FAILURES], lane[SINCE], lane[RESTS] = 0, 0, 0
end

local function throttled(lane, rest, chance)
  slower(lane, 2, SLOWEST_STEP)
  if rest ~= 0 then
    lane[WHY] = string.format("they asked for %.0f s of quiet", rest)
  else
    lane[WHY] = "they said: too fast"
    rest = THROTTLE_REST * (1 + chance)
  end
  lane[REST] = max(lane[REST], now + rest)
end

local function failed(lane, rest, chance)
  slower(lane, 1.25, SLOWEST_STEP)
  lane[FAILURES] = lane[FAILURES] + 1
  if lane[SINCE] == 0 then lane[SINCE] = now end
  if lane[FAILURES] < BREAKER or now < lane[REST] then return end
  local quiet = min(LONGEST_REST, FIRST_REST * 2 ^ min(lane[RESTS], 20)) * (1 + 0.25 * chance)
  lane[RESTS] = lane[RESTS] + 1
  lane[REST] = now + max(quiet, rest)
  lane[WHY] = string.format("%d failures in a row", lane[FAILURES])
end

local function learn(lane, kind, took, rest, interval, chance)
  if interval > lane[FLOOR] then
    local asked = min(interval, max(lane[CEILING], lane[FLOOR]))
    lane[FLOOR], lane[INTERVAL] = asked, max(lane[INTERVAL], asked)
  end
  if kind == "ok" then
    answered(lane, took)
  elseif kind == "throttled" then
    throttled(lane, rest, chance)
  elseif FAILED[kind] then
    failed(lane, rest, chance)
  elseif kind ~= "refused" then
    answered(lane, took)
  end
end

local function given_up(lane, patience)
  return lane[FAILURES] >= BREAKER and now - lane[SINCE] > patience
end

local function forgive(lane)
  lane[FAILURES], lane[SINCE], lane[RESTS] = BREAKER - 1, 0, 0
end

-- Retries the lane may start now.
local function credit(lane)
  if lane[CREDIT] == ALLOWANCE then return ALLOWANCE end
  return min(ALLOWANCE, lane[CREDIT] + DRIP * max(0, now - lane[CREDITED]))
end

local function spend(lane, fresh, retries, share)
  if retries == 0 and lane[CREDIT] == ALLOWANCE then return end
  local left = min(ALLOWANCE, credit(lane) + share * fresh) - retries
  if left == ALLOWANCE and lane[CREDIT] == ALLOWANCE then return end
  lane[CREDIT], lane[CREDITED] = left, now
end

local function credit_at(lane)
  return now + max(0, 1 - credit(lane)) / DRIP
end
