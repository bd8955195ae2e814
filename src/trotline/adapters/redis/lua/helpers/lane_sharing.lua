-- Lanes that several jobs share, their bounds and turns: a port of rules/lane_sharing.py.
--
-- Claims are one flat array; lua_layouts.py names the values of a claim.
--
-- uses clock: now
-- uses job_counters: floor max min book
-- uses other_jobs: job_of
-- uses pace: open_pace shortest
-- exports: FOREVER is_shared counts is_there rebound drop_claim let_go own_claim claim wait_for yields_until portion
-- exports: order

FOREVER = math.huge

-- Do other jobs use the lane?
function is_shared(lane)
  local count = #lane[CLAIMS]
  return count > CLAIM_SIZE or (count == CLAIM_SIZE and lane[MINE] == 0)
end

function counts(claims, at)
  local used_at = claims[at + CLAIM_USED]
  return used_at > 0 and now <= used_at + max(IN_FORCE, 2 * claims[at + CLAIM_AT_LEAST])
end

-- Is the job still of any concern here?
function is_there(claims, at)
  if job_of(claims[at + CLAIM_OWNER]).over then return false end
  return counts(claims, at) or now <= claims[at + CLAIM_WANTS] + YIELD
end

-- Within these bounds, from now on: what is reserved stays reserved, and the next start keeps the new interval to the last
-- of it. forget: also what it learnt of its interval.
function rebound(lane, bounds, forget)
  local least, most, places = bounds[BOUND_FLOOR], bounds[BOUND_CEILING], bounds[BOUND_CONCURRENCY]
  if not forget and least == lane[FLOOR] and most == lane[CEILING] and places == lane[CONCURRENCY] then return end
  local before, learnt = lane[INTERVAL], lane[INTERVAL] > shortest(lane)
  lane[FLOOR], lane[CEILING], lane[CONCURRENCY] = least, most, places
  local interval = shortest(lane)
  if learnt and not forget then interval = min(max(before, interval), most) end
  if forget then lane[LIMIT], lane[LOST], lane[SLOWED] = 0, 0, 0 end
  lane[NEXT] = min(lane[NEXT] + max(0, interval - before), now + HORIZON + interval)
  lane[INTERVAL] = interval
end

-- A lane that has learnt nothing, but for what robots.txt asks.
local function forget_learnt(lane, bounds)
  local next_start, asked, asked_at = lane[NEXT], lane[ASKED], lane[ASKED_AT]
  open_pace(lane, bounds)
  lane[NEXT], lane[ASKED], lane[ASKED_AT] = next_start, asked, asked_at
end

function drop_claim(lane, at)
  local claims = lane[CLAIMS]
  lane[LEASED] = lane[LEASED] - claims[at + CLAIM_RUNS]
  for _ = 1, CLAIM_SIZE do table.remove(claims, at) end
  if lane[MINE] > at then lane[MINE] = lane[MINE] - CLAIM_SIZE elseif lane[MINE] == at then lane[MINE] = 0 end
end

-- Drop claims that are out of date. One that still has visits stays for their number, unless its job was deleted.
function let_go(lane, own)
  local claims = lane[CLAIMS]
  for at = #claims - CLAIM_SIZE + 1, 1, -CLAIM_SIZE do
    if (own or at ~= lane[MINE]) and not is_there(claims, at)
      and (claims[at + CLAIM_RUNS] <= 0 or job_of(claims[at + CLAIM_OWNER]).gone) then
      drop_claim(lane, at)
    end
  end
end

function own_claim(lane, bounds, used_at)
  local claims = lane[CLAIMS]
  local at = #claims + 1
  lane[MINE] = at
  claims[at + CLAIM_OWNER], claims[at + CLAIM_RUNS], claims[at + CLAIM_USED], claims[at + CLAIM_WANTS] =
    book.number, 0, used_at, 0
  claims[at + CLAIM_AT_LEAST], claims[at + CLAIM_AT_MOST], claims[at + CLAIM_PLACES] =
    bounds[BOUND_FLOOR], bounds[BOUND_CEILING], bounds[BOUND_CONCURRENCY]
end

-- The slowest of the paces in force, with these bounds or without.
local function slowest(lane, least, most, places)
  local claims = lane[CLAIMS]
  for at = 1, #claims, CLAIM_SIZE do
    if counts(claims, at) and not job_of(claims[at + CLAIM_OWNER]).over then
      least, most = max(least, claims[at + CLAIM_AT_LEAST]), max(most, claims[at + CLAIM_AT_MOST])
      places = min(places, claims[at + CLAIM_PLACES])
    end
  end
  return {least, most, places}
end

-- The job wants a start: its bounds are among those in force, from now on if they were not.
function claim(lane, bounds)
  local claims = lane[CLAIMS]
  if #claims == CLAIM_SIZE and lane[MINE] == 1 then
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
    claims[mine + CLAIM_USED] = now
  end
  if not is_shared(lane) and now > max(lane[NEXT], lane[REST]) + FORGETS then forget_learnt(lane, bounds) end
  rebound(lane, lane[ORDERED] or slowest(lane, bounds[BOUND_FLOOR], bounds[BOUND_CEILING], bounds[BOUND_CONCURRENCY]))
end

-- The job cannot start now, and may from a moment on.
function wait_for(lane, bounds, moment)
  if lane[MINE] == 0 then own_claim(lane, bounds, 0) end
  lane[CLAIMS][lane[MINE] + CLAIM_WANTS] = moment
end

-- Until when this job lets another one go first; 0: it is its turn.
function yields_until(lane)
  local claims, mine, moment = lane[CLAIMS], lane[MINE], 0
  local last = mine > 0 and claims[mine + CLAIM_USED] or 0
  for at = 1, #claims, CLAIM_SIZE do
    local wants = claims[at + CLAIM_WANTS]
    if at ~= mine and claims[at + CLAIM_USED] < last and wants > 0 and wants <= now and now < wants + YIELD then
      moment = max(moment, wants + YIELD)
    end
  end
  return moment
end

-- The number of starts per turn: unlimited if the job is alone.
function portion(lane, wanted)
  if not is_shared(lane) then return wanted end
  return min(wanted, max(1, floor(PORTION / lane[INTERVAL])))
end

-- Bounds that an operator ordered, from now on; or (nil) no longer. What the lane learnt of its interval is forgotten, its rests not.
function order(lane, bounds)
  lane[ORDERED] = bounds
  if not bounds then
    bounds = slowest(lane, 0, 0, FOREVER)
    -- Without any claim it stays as it is until a job claims it.
    if bounds[BOUND_CONCURRENCY] == FOREVER then bounds = {lane[FLOOR], lane[CEILING], lane[CONCURRENCY]} end
  end
  rebound(lane, bounds, true)
end
