-- The part of a lane that all jobs share, in one string: its pace, and the claim of each job.
--
--   S lanes    hash  lane -> packed, see below. Not there: it was never served, or has learnt nothing
--   S jobs     hash  number of a job -> its prefix P
--
-- The lane's bounds are those in force (lane_sharing.lua), and `leased` is the sum of all jobs' visits.
-- A string that is not a lane was written by another program: such a lane is opened again (docs/decisions/088).
--
-- uses clock: call now
-- uses job_counters: sub byte max pack_ unpack_ P S book job_pace tally
-- uses other_jobs: job_of
-- uses wake_lane: wake_lane
-- uses lane_pool: pool_of pool_parts
-- uses pace: open_pace free_at
-- uses lane_sharing: FOREVER own_claim
-- exports: SHARED touched touches remember change HEEDS SPLIT bounds_of is_pace read_shared pack_shared run
-- exports: postpone wake_others

SHARED = S .. "lanes"
touched, touches = {}, 0

-- Changed lanes, which are written at the end.
function remember(lane)
  if not lane[TOUCHED] then
    lane[TOUCHED] = 0
    touches = touches + 1
    touched[touches] = lane
  end
end

-- What all jobs share of it changes.
function change(lane)
  remember(lane)
  lane[CHANGED] = true
end

local least, most, places, gap, flags = unpack_(JOB_BOUNDS_FORM .. "B", job_pace)
local usual, others = {least, most, places, gap}, {}
HEEDS, SPLIT = flags % 4 >= 2, flags >= 4

-- A pace that is not the usual one: of the lane, or through a proxy pool of its host.
local function own_pace(name)
  local packed = call("HGET", P .. "paces", name)
  if packed or not pool_of(name) then return packed end
  return call("HGET", P .. "paces", (pool_parts(name)))
end

-- A rate that each member of a proxy pool keeps: the lane itself has none, and no limit of visits unless one was set.
local function per_proxy(bounds)
  local visits = bounds[BOUND_CONCURRENCY]
  if visits == USUAL_CONCURRENCY then visits = MANY_VISITS end
  return {FREE_INTERVAL, max(FREE_INTERVAL, bounds[BOUND_CEILING]), visits, bounds[BOUND_GAP]}
end

-- What this job wants of a lane: shortest and longest interval, visits at the same time.
function bounds_of(name)
  if flags % 2 == 0 and (gap == 0 or not pool_of(name)) then return usual end
  local bounds = others[name]
  if not bounds then
    local packed = flags % 2 == 1 and own_pace(name)
    bounds = packed and {unpack_(JOB_BOUNDS_FORM, packed)} or usual
    if bounds[BOUND_GAP] > 0 and pool_of(name) then bounds = per_proxy(bounds) end
    others[name] = bounds
  end
  return bounds
end

-- A lane with nothing in it, in the order of lua_layouts.py; the last six values are room for its first levels: an array that
-- grows later is copied.
local function blank_lane(name)
  return {name, "", false, 0, 0, 0,
    0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, RETRY_ALLOWANCE, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    false, {}, 0, false, false, false, false, 0,
    0, 0, 0, 0, 0, 0}
end

local function open_shared(name)
  local lane = blank_lane(name)
  open_pace(lane, bounds_of(name))
  return lane
end

-- The string cannot be read. The lane may have been asked a moment ago, so it waits for one interval.
local function repair_shared(name)
  local lane = open_shared(name)
  lane[NEXT] = now + lane[INTERVAL]
  tally("lanes repaired", 1)
  change(lane)
  return lane
end

-- No comparison holds for what is not a number.
function is_pace(least, most, places, interval, next_start)
  return least >= 0 and most >= least and places >= 1 and interval >= 0 and interval < FOREVER and next_start >= 0
end

local function is_struggling(packed)
  if #packed < SHARED_BYTES or byte(packed) ~= STRUGGLING then return false end
  local _, count, is_ordered, least, most, places, interval, next_start = unpack_(SHARED_FORM, packed)
  return is_ordered <= 1 and #packed >= SHARED_BYTES + is_ordered * BOUNDS_BYTES + count * CLAIM_BYTES
    and is_pace(least, most, places, interval, next_start)
end

local function read_calm(name, packed)
  local _, job, runs, used, least, most, places, interval, next_start, latency, usually, asked, asked_at =
    unpack_(CALM_FORM, packed)
  if not is_pace(least, most, places, interval, next_start) then return repair_shared(name) end
  -- As blank_lane; assigned one by one, the values would cost twice as much.
  return {name, "", false, 0, runs, 0,
    least, most, places, interval, next_start, 0,
    0, 0, 0, 0, latency, usually, 0, RETRY_ALLOWANCE, 0,
    0, 0, 0, 0, 0, 0, 0, asked, asked_at, 0,
    false, {job, runs, used, 0, least, most, places}, job == book.number and 1 or 0, false, false, false, false, 0,
    0, 0, 0, 0, 0, 0}
end

-- A lane as all jobs see it; job_lanes.lua adds this job's own part, for which there is room.
function read_shared(name, packed)
  if not packed then return open_shared(name) end
  if #packed == CALM_BYTES and byte(packed) == CALM then return read_calm(name, packed) end
  if not is_struggling(packed) then return repair_shared(name) end
  local _, count, is_ordered = unpack_("<BHB", packed)
  local lane = {name, "", false, 0, 0, 0, select(4, unpack_(SHARED_FORM, packed))}
  local at = SHARED_BYTES + 1
  lane[ORDERED] = false
  if is_ordered == 1 then
    lane[ORDERED] = {unpack_(BOUNDS_FORM, packed, at)}
    at = table.remove(lane[ORDERED])
  end
  local claims, leased, mine = {}, 0, 0
  for i = 1, count * CLAIM_SIZE, CLAIM_SIZE do
    claims[i + CLAIM_OWNER], claims[i + CLAIM_RUNS], claims[i + CLAIM_USED], claims[i + CLAIM_WANTS],
      claims[i + CLAIM_AT_LEAST], claims[i + CLAIM_AT_MOST], claims[i + CLAIM_PLACES] = unpack_(CLAIM_FORM, packed, at)
    at = at + CLAIM_BYTES
    leased = leased + claims[i + CLAIM_RUNS]
    if claims[i + CLAIM_OWNER] == book.number then mine = i end
  end
  lane[WHY], lane[LEASED], lane[CLAIMS], lane[MINE] = sub(packed, at), leased, claims, mine
  lane[CHANGED], lane[FREED], lane[KEPT], lane[DELAYED], lane[LEVELS] = false, false, false, false, 0
  return lane
end

local function is_calm(lane, claims)
  return #claims == CLAIM_SIZE and claims[1 + CLAIM_WANTS] == 0 and lane[FAILURES] == 0 and lane[SINCE] == 0
    and lane[RESTS] == 0 and lane[WHY] == "" and lane[TROUBLE] == 0 and lane[CREDIT] == RETRY_ALLOWANCE
    and lane[LIMIT] == 0 and lane[SLOWED] + 1 <= now and lane[REST] <= now and not lane[ORDERED]
    and lane[FLOOR] == claims[1 + CLAIM_AT_LEAST] and lane[CEILING] == claims[1 + CLAIM_AT_MOST]
    and lane[CONCURRENCY] == claims[1 + CLAIM_PLACES]
end

function pack_shared(lane)
  local claims, ordered = lane[CLAIMS], lane[ORDERED]
  if is_calm(lane, claims) then
    return pack_(CALM_FORM, CALM, claims[1 + CLAIM_OWNER], claims[1 + CLAIM_RUNS], claims[1 + CLAIM_USED], lane[FLOOR],
      lane[CEILING], lane[CONCURRENCY], lane[INTERVAL], lane[NEXT], lane[LATENCY], lane[USUAL], lane[ASKED],
      lane[ASKED_AT])
  end
  local parts = {
    pack_(SHARED_FORM, STRUGGLING, #claims / CLAIM_SIZE, ordered and 1 or 0, unpack(lane, FLOOR, OLDER)),
    ordered and pack_(BOUNDS_FORM, unpack(ordered, BOUND_FLOOR, BOUND_CONCURRENCY)) or "",
  }
  for at = 1, #claims, CLAIM_SIZE do
    parts[#parts + 1] = pack_(CLAIM_FORM, unpack(claims, at, at + CLAIM_SIZE - 1))
  end
  parts[#parts + 1] = lane[WHY]
  return table.concat(parts)
end

-- So many visits of this job begin, or (less than none) have come to an end.
function run(lane, count)
  if lane[MINE] == 0 then own_claim(lane, bounds_of(lane[NAME]), 0) end
  local claims, at = lane[CLAIMS], lane[MINE] + CLAIM_RUNS
  -- Visits that began before a lane was repaired are not counted in it.
  count = max(count, -claims[at + CLAIM_OWNER])
  lane[LEASED] = lane[LEASED] + count
  if count < 0 and lane[OLDER] > 0 then lane[OLDER] = max(0, lane[OLDER] + count) end
  claims[at] = claims[at + CLAIM_OWNER] + count
  if count <= 0 then lane[FREED] = true end
  change(lane)
end

-- Another job was served: waiting jobs keep waiting.
function postpone(lane)
  local claims, free = lane[CLAIMS], free_at(lane) or FOREVER
  for at = 1, #claims, CLAIM_SIZE do
    if claims[at + CLAIM_WANTS] > 0 and at ~= lane[MINE] then claims[at + CLAIM_WANTS] = max(free, now) end
  end
end

-- There is a place: others who wait for one may have it from now on, and are woken. all: every job that uses the lane is woken.
function wake_others(lane, all)
  if not all and not free_at(lane) then return end
  local claims = lane[CLAIMS]
  for at = 1, #claims, CLAIM_SIZE do
    local owner = claims[at + CLAIM_OWNER]
    local job = owner ~= book.number and (all or claims[at + CLAIM_WANTS] == FOREVER) and job_of(owner)
    if job and not job.gone then
      if claims[at + CLAIM_WANTS] == FOREVER then
        claims[at + CLAIM_WANTS] = now
        change(lane)
      end
      wake_lane(job.prefix, lane[NAME])
    end
  end
end
