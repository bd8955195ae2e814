-- What all jobs know of a lane, in one string: its pace, and what each of them wants of it.
--
--   S lanes    hash  lane -> packed, see below. Not there: nobody was served in it yet, or it has learnt nothing
--   S jobs     hash  number of a job -> its prefix P
--
-- The lane's bounds are those in force (sharing.lua), and `leased` is the sum of all jobs' visits.
-- A string that is no lane was written by somebody else: such a lane is opened anew (docs/decisions/088).

local SHARED = S .. "lanes"
local STRUGGLING, CALM = 0, 1
-- A calm lane has one claim, and nothing but good answers: it is they that a broad crawl has by the hundred thousand.
local CALM_FORM, FORM = "<BI4I4dddI4dddddd", "<BHBddI4dddI4dI4dddddddBddI4I4ddd"
local BOUNDS_FORM, CLAIM_FORM, CLAIM_SIZE = "<ddI4", "<I4I4ddddI4", 44
local CALM_SIZE, LEAST_SIZE, BOUNDS_SIZE = 85, 169, 20
local LOOK = pack_("<i4I4", 0, 0)

local touched, touches = {}, 0

-- Whatever is changed of a lane, it is among those that are written at the end.
local function remember(lane)
  if not lane[TOUCHED] then
    lane[TOUCHED] = 0
    touches = touches + 1
    touched[touches] = lane
  end
end

-- What all jobs share of it changes.
local function change(lane)
  remember(lane)
  lane[CHANGED] = true
end

-- Blocks of their own: a script has room for 200 local names.
local HEEDS, bounds_of
do
  local least, most, places, flags = unpack_("<ddI4B", found[8])
  local usual, others = {least, most, places}, {}
  HEEDS = flags >= 2

  -- What this job wants of a lane: shortest and longest interval, visits at the same time.
  function bounds_of(name)
    if flags % 2 == 0 then return usual end
    local bounds = others[name]
    if not bounds then
      local packed = call("HGET", P .. "paces", name)
      bounds = packed and {unpack_(BOUNDS_FORM, packed)} or usual
      others[name] = bounds
    end
    return bounds
  end
end

local function open_shared(name)
  local bounds = bounds_of(name)
  return {name, "", false, 0, 0, 0, bounds[1], bounds[2], bounds[3], bounds[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, ALLOWANCE, now,
    0, 0, 0, 0, 0, 0, 0, 0, 0, false, {}, 0, false, false, false, false, 0, 0, 0, 0, 0, 0, 0}
end

-- What is in it nobody can read. It may have been asked a moment ago, so it waits for one interval.
local function repair_shared(name)
  local lane = open_shared(name)
  lane[NEXT] = now + lane[INTERVAL]
  tally("lanes repaired", 1)
  change(lane)
  return lane
end

-- No comparison holds for what is not a number.
local function is_pace(least, most, places, interval, next_start)
  return least >= 0 and most >= least and places >= 1 and interval >= 0 and interval < FOREVER and next_start >= 0
end

local function is_struggling(packed)
  if #packed < LEAST_SIZE or byte(packed) ~= STRUGGLING then return false end
  local _, count, is_ordered, least, most, places, interval, next_start = unpack_("<BHBddI4dd", packed)
  return is_ordered <= 1 and #packed >= LEAST_SIZE + is_ordered * BOUNDS_SIZE + count * CLAIM_SIZE
    and is_pace(least, most, places, interval, next_start)
end

-- A lane as all jobs see it; lanes.lua adds this job's own part, for which there is room.
local function read_shared(name, packed)
  if not packed then return open_shared(name) end
  if #packed == CALM_SIZE and byte(packed) == CALM then
    local _, job, runs, used, least, most, places, interval, next_start, latency, usually, asked, asked_at =
      unpack_(CALM_FORM, packed)
    if not is_pace(least, most, places, interval, next_start) then return repair_shared(name) end
    return {name, "", false, 0, runs, 0, least, most, places, interval, next_start, 0, 0, 0, 0, 0, latency, usually, 0,
      ALLOWANCE, 0, 0, 0, 0, 0, 0, 0, 0, asked, asked_at, false, {job, runs, used, 0, least, most, places},
      job == book.number and 1 or 0, false, false, false, false, 0, 0, 0, 0, 0, 0, 0}
  end
  if not is_struggling(packed) then return repair_shared(name) end
  local lane = {name, "", false, 0, 0, 0, select(4, unpack_(FORM, packed))}
  local _, count, is_ordered = unpack_("<BHB", packed)
  local at = lane[ASKED_AT + 1]
  lane[ORDERED] = false
  if is_ordered == 1 then
    lane[ORDERED] = {unpack_(BOUNDS_FORM, packed, at)}
    at = table.remove(lane[ORDERED])
  end
  local claims, leased, mine = {}, 0, 0
  for i = 1, count * CLAIM, CLAIM do
    claims[i], claims[i + 1], claims[i + 2], claims[i + 3], claims[i + 4], claims[i + 5], claims[i + 6] =
      unpack_(CLAIM_FORM, packed, at)
    at = at + CLAIM_SIZE
    leased = leased + claims[i + RUNS]
    if claims[i] == book.number then mine = i end
  end
  lane[WHY], lane[LEASED], lane[CLAIMS], lane[MINE] = sub(packed, at), leased, claims, mine
  lane[CHANGED], lane[FREED], lane[KEPT], lane[DELAYED], lane[LEVELS] = false, false, false, false, 0
  return lane
end

local pack_shared
do
  local function is_calm(lane, claims)
    return #claims == CLAIM and claims[1 + WANTS] == 0 and lane[FAILURES] == 0 and lane[SINCE] == 0 and lane[RESTS] == 0
      and lane[WHY] == "" and lane[TROUBLE] == 0 and lane[CREDIT] == ALLOWANCE and lane[LIMIT] == 0
      and lane[SLOWED] + 1 <= now and lane[REST] <= now and not lane[ORDERED] and lane[FLOOR] == claims[1 + AT_LEAST]
      and lane[CEILING] == claims[1 + AT_MOST] and lane[CONCURRENCY] == claims[1 + PLACES]
  end

  function pack_shared(lane)
    local claims, ordered = lane[CLAIMS], lane[ORDERED]
    if is_calm(lane, claims) then
      return pack_(CALM_FORM, CALM, claims[1], claims[1 + RUNS], claims[1 + USED], lane[FLOOR], lane[CEILING],
        lane[CONCURRENCY], lane[INTERVAL], lane[NEXT], lane[LATENCY], lane[USUAL], lane[ASKED], lane[ASKED_AT])
    end
    local parts = {
      pack_(FORM, STRUGGLING, #claims / CLAIM, ordered and 1 or 0, unpack(lane, FLOOR, ASKED_AT)),
      ordered and pack_(BOUNDS_FORM, ordered[1], ordered[2], ordered[3]) or "",
    }
    for at = 1, #claims, CLAIM do parts[#parts + 1] = pack_(CLAIM_FORM, unpack(claims, at, at + CLAIM - 1)) end
    parts[#parts + 1] = lane[WHY]
    return table.concat(parts)
  end
end

-- So many visits of this job begin, or (less than none) have come to an end.
local function run(lane, count)
  if lane[MINE] == 0 then own_claim(lane, bounds_of(lane[NAME]), 0) end
  local claims, at = lane[CLAIMS], lane[MINE] + RUNS
  -- Of a lane that was repaired nobody knows what had begun before.
  count = max(count, -claims[at])
  lane[LEASED] = lane[LEASED] + count
  claims[at] = claims[at] + count
  if count <= 0 then lane[FREED] = true end
  change(lane)
end

-- Somebody else was served: those who wait have to wait on.
local function postpone(lane)
  local claims, free = lane[CLAIMS], free_at(lane) or FOREVER
  for at = 1, #claims, CLAIM do
    if claims[at + WANTS] > 0 and at ~= lane[MINE] then claims[at + WANTS] = max(free, now) end
  end
end

local tell_others
do
  local function tell(job, name)
    call("ZADD", job.prefix .. "rest", "LT", string.format("%d", now * 1000), LOOK .. name)
    if call("HGET", job.prefix .. "job", "idle") == "1" then
      call("HSET", job.prefix .. "job", "idle", "0")
      call("PUBLISH", job.prefix .. "news", "")
    end
  end

  -- There is a place: others who wait for one may have it from now on, and are told. all: whoever uses the lane is told.
  function tell_others(lane, all)
    if not all and not free_at(lane) then return end
    local claims = lane[CLAIMS]
    for at = 1, #claims, CLAIM do
      local job = claims[at] ~= book.number and (all or claims[at + WANTS] == FOREVER) and job_of(claims[at])
      if job and not job.gone then
        if claims[at + WANTS] == FOREVER then
          claims[at + WANTS] = now
          change(lane)
        end
        tell(job, lane[NAME])
      end
    end
  end
end
