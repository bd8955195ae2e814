-- Good visits in calm lanes, from string to string (CALM_LANE in lua_layouts.py): such a lane is not made into an array and back.
-- The result is that of `learn` and `run`, where they change nothing but the number of visits and how long answers take.
--
-- uses clock: now
-- uses job_counters: byte pack_ unpack_ book many tally
-- uses adaptive_pace: smoothed is_known_delay
-- uses shared_lanes: SHARED HEEDS is_pace
-- exports: settle_calmly write_calm_lanes

local changed = {}

-- Are these values of visits (EndingMore) counters only, and is the delay of robots.txt (robots: it was read) known?
local function are_counters(mores, first, last, robots, asked, asked_at)
  for i = first, last do
    local more = mores[i]
    local interval = more[MORE_INTERVAL]
    if more[MORE_WAIT] or ((robots or interval > 0) and not is_known_delay(asked, asked_at, interval)) then return false end
  end
  return true
end

-- A number of visits of this job ended with this kind, from first on in tooks. more: where their other values begin, or 0.
-- Returns false, and has done nothing, if that changes more.
function settle_calmly(name, packed, kind, tooks, first, count, mores, more)
  local robots = kind == "+ok"
  if #packed ~= CALM_BYTES or byte(packed) ~= CALM or (kind ~= "ok" and not robots) then return false end
  local _, job, visits, used, least, most, places, interval, next_start, latency, usual, asked, asked_at =
    unpack_(CALM_FORM, packed)
  if job ~= book.number or visits < count or not is_pace(least, most, places, interval, next_start) then return false end
  -- With all places taken the lane may have to be queued. There is one while robots.txt is not known.
  if visits >= places or (HEEDS and (asked_at == 0 or now >= asked_at + ROBOTS_GOOD_FOR)) then return false end
  if interval ~= least or asked > least then return false end
  if more > 0 then
    if not are_counters(mores, more, more + count - 1, robots, asked, asked_at) then return false end
  elseif robots and not is_known_delay(asked, asked_at, 0) then
    return false
  end
  latency, usual = smoothed(latency, usual, tooks, first, first + count - 1)
  if not latency then return false end
  for i = more, more > 0 and more + count - 1 or -1 do
    local counted = mores[i][MORE_TALLIES]
    for k = 1, #counted, 2 do tally(counted[k], counted[k + 1]) end
  end
  local at = #changed
  changed[at + 1], changed[at + 2] = name, pack_(CALM_FORM, CALM, job, visits - count, used, least, most, places,
    interval, next_start, latency, usual, asked, asked_at)
  return true
end

function write_calm_lanes()
  many("HSET", SHARED, changed)
  changed = {}
end
