-- A lane that several jobs use, whose bounds hold and whose turn it is: rules/lane_sharing.py, word for word.
--
-- Claims are one flat array. A claim is a job's number, how many visits it has in the lane, when it was served last (or
-- wanted its first start), from when on it waits for a start (0: it does not; FOREVER: until somebody gives a place
-- back), and its bounds.

local CLAIM = 7
local RUNS, USED, WANTS, AT_LEAST, AT_MOST, PLACES = 1, 2, 3, 4, 5, 6
local IN_FORCE, YIELD, PORTION, FORGETS = 60, 0.25, 0.1, 600
local FOREVER = math.huge

-- Are others in the lane as well?
local function is_shared(lane)
  local count = #lane[CLAIMS]
  return count > CLAIM or (count == CLAIM and lane[MINE] == 0)
end

local function counts(claims, at)
  local used_at = claims[at + USED]
  return used_at > 0 and now <= used_at + max(IN_FORCE, 2 * claims[at + AT_LEAST])
end

-- Is the job still of any concern here?
local function is_there(claims, at)
  if job_of(claims[at]).over then return false end
  return counts(claims, at) or now <= claims[at + WANTS] + YIELD
end

-- Within these bounds, from now on: what is reserved stays reserved, and the next start keeps the new interval to the last
-- of it. forget: also what it learnt of its interval.
local function rebound(lane, bounds, forget)
  local least, most, places = bounds[1], bounds[2], bounds[3]
  if not forget and least == lane[FLOOR] and most == lane[CEILING] and places == lane[CONCURRENCY] then return end
  local before, learnt = lane[INTERVAL], lane[INTERVAL] > shortest(lane)
  lane[FLOOR], lane[CEILING], lane[CONCURRENCY] = least, most, places
  local interval = shortest(lane)
  if learnt and not forget then interval = min(max(before, interval), most) end
  if forget then lane[LIMIT], lane[LOST], lane[SLOWED] = 0, 0, 0 end
  lane[NEXT] = min(lane[NEXT] + max(0, interval - before), now + HORIZON + interval)
  lane[INTERVAL] = interval
end

-- A lane that has learnt nothing, but for what it was told.
local function forget_learnt(lane, bounds)
  local next_start, asked, asked_at = lane[NEXT], lane[ASKED], lane[ASKED_AT]
  open_pace(lane, bounds)
  lane[NEXT], lane[ASKED], lane[ASKED_AT] = next_start, asked, asked_at
end

local function drop_claim(lane, at)
  local claims = lane[CLAIMS]
  lane[LEASED] = lane[LEASED] - claims[at + RUNS]
  for _ = 1, CLAIM do table.remove(claims, at) end
  if lane[MINE] > at then lane[MINE] = lane[MINE] - CLAIM elseif lane[MINE] == at then lane[MINE] = 0 end
end

-- Claims that are none any more go. One that still has visits stays for their number; those of a job that was forgotten
-- are nobody's.
local function let_go(lane, own)
  local claims = lane[CLAIMS]
  for at = #claims - CLAIM + 1, 1, -CLAIM do
    if (own or at ~= lane[MINE]) and not is_there(claims, at)
      and (claims[at + RUNS] <= 0 or job_of(claims[at]).gone) then
      drop_claim(lane, at)
    end
  end
end

local function own_claim(lane, bounds, used_at)
  local claims = lane[CLAIMS]
  local at = #claims
  lane[MINE] = at + 1
  claims[at + 1], claims[at + 2], claims[at + 3], claims[at + 4] = book.number, 0, used_at, 0
  claims[at + 5], claims[at + 6], claims[at + 7] = bounds[1], bounds[2], bounds[3]
end

-- The slowest of the paces in force, with these bounds or without.
local function slowest(lane, least, most, places)
  local claims = lane[CLAIMS]
  for at = 1, #claims, CLAIM do
    if counts(claims, at) and not job_of(claims[at]).over then
      least, most = max(least, claims[at + AT_LEAST]), max(most, claims[at + AT_MOST])
      places = min(places, claims[at + PLACES])
    end
  end
  return {least, most, places}
end

-- The job wants a start: its bounds are among those in force, from now on if they were not.
local function claim(lane, bounds)
  local claims = lane[CLAIMS]
  if #claims == CLAIM and lane[MINE] == 1 then
    -- Alone, as nearly always.
    if now > max(lane[NEXT], lane[REST]) + FORGETS then forget_learnt(lane, bounds) end
    rebound(lane, lane[ORDERED] or bounds)
    return
  end
  if #claims == 0 and lane[NEXT] == 0 then
    own_claim(lane, bounds, now)
    rebound(lane, lane[ORDERED] or bounds)
    return
  end
  let_go(lane)
  local mine = lane[MINE]
  if mine == 0 then
    own_claim(lane, bounds, now)
  elseif not counts(claims, mine) then
    claims[mine + USED] = now
  end
  if not is_shared(lane) and now > max(lane[NEXT], lane[REST]) + FORGETS then forget_learnt(lane, bounds) end
  rebound(lane, lane[ORDERED] or slowest(lane, bounds[1], bounds[2], bounds[3]))
end

-- The job cannot start now, and may from a moment on.
local function wait_for(lane, bounds, moment)
  if lane[MINE] == 0 then own_claim(lane, bounds, 0) end
  lane[CLAIMS][lane[MINE] + WANTS] = moment
end

-- Until when this job lets another one go first; 0: it is its turn.
local function yields_until(lane)
  local claims, mine, moment = lane[CLAIMS], lane[MINE], 0
  local last = mine > 0 and claims[mine + USED] or 0
  for at = 1, #claims, CLAIM do
    local wants = claims[at + WANTS]
    if at ~= mine and claims[at + USED] < last and wants > 0 and wants <= now and now < wants + YIELD then
      moment = max(moment, wants + YIELD)
    end
  end
  return moment
end

-- How many starts the job gets at one turn: all that it wants, if it is alone.
local function portion(lane, wanted)
  if not is_shared(lane) then return wanted end
  return min(wanted, max(1, floor(PORTION / lane[INTERVAL])))
end

-- The operator's word, from now on, or none any more. What the lane learnt of its interval is forgotten, its rests not.
local function order(lane, bounds)
  lane[ORDERED] = bounds
  if not bounds then
    bounds = slowest(lane, 0, 0, FOREVER)
    -- With nobody there it stays as it is until somebody comes.
    if bounds[3] == FOREVER then bounds = {lane[FLOOR], lane[CEILING], lane[CONCURRENCY]} end
  end
  rebound(lane, bounds, true)
end
