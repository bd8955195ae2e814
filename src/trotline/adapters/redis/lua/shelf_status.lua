#!lua flags=allow-oom
-- What there is to take off the shelves, and whether there is room for it (helpers/broker_shelves.lua).
--   KEYS[1] P job     ARGV[2] seconds after which a parcel is published again     ARGV[3] shards
--   returns the number of tasks in the queues, of unpublished parcels, of those that nobody publishes, and then for each
--   shelf its name, the number of its parcels, and 1 if there is room
--
-- uses clock: call now
-- uses job_counters: max JOB P book
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: queue

-- Lanes of an overflow group that are looked at.
local SAMPLED = 50

local shelved = tonumber(call("HGET", JOB, "shelved") or 0)
local ready = max(0, book.waiting - book.delayed - shelved)
local window = WINDOW / tonumber(ARGV[3])
-- Whoever waits for tasks is woken when a parcel was published.
if ready == 0 then call("HSET", JOB, "idle", "1") end

local function in_queues(lane)
  local sum = 0
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do sum = sum + call("LLEN", queue(lane, lane[at])) end
  return sum
end

-- The lanes of an overflow group have nothing on the main shelves, and little in their queues.
local function has_room(group)
  local names = call("SRANDMEMBER", P .. "over:" .. group, SAMPLED)
  load_lanes(names)
  for i = 1, #names do
    if call("HEXISTS", P .. "onshelf", names[i]) == 1 or in_queues(lanes[names[i]]) >= LANE_SHARE then return false end
  end
  return true
end

local reply = {ready, call("ZCARD", P .. "unsent"), call("ZCOUNT", P .. "unsent", "-inf", now - tonumber(ARGV[2]))}
local flat = call("HGETALL", P .. "shelves")
for i = 1, #flat, 2 do
  local group, band = string.match(flat[i], "^o?(%d*)b(%d+)$")
  local open = ready < window * (1 + BAND_SLACK * (SHELF_LAST - tonumber(band)))
  if open and group ~= "" then open = has_room(group) end
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = flat[i], tonumber(flat[i + 1]), open and 1 or 0
end
return reply
