#!lua flags=no-writes
-- Waiting tasks by queue (helpers/route_queues.lua), of a page of the lanes.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many lanes     returns the next cursor, then pairs of queue and number
--
-- uses clock: call
-- uses job_counters: unpack_
-- uses shared_lanes: SHARED
-- uses job_lanes: LANES LATE MORE read_lane fetch
-- uses priority_levels: queue
-- uses route_queues: queue_of

-- Delayed tasks of a lane, and levels that its string has no room for, that are looked at: further ones count with the last.
local MOST = 5000

local counts = {}
local function count(level, number)
  local each = queue_of(level)
  counts[each] = (counts[each] or 0) + number
end

local cursor, flat = unpack(call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3]), 1, 2)
local names = {}
for i = 1, #flat, 2 do names[#names + 1] = flat[i] end
local shared = fetch(SHARED, names)
for i = 1, #names do
  local name = names[i]
  local lane = read_lane(name, flat[2 * i], shared[i])
  for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do count(lane[at], call("LLEN", queue(lane, lane[at]))) end
  for parity = 0, 1 do
    local more = call("ZRANGE", MORE .. parity .. ":" .. name, 0, MOST - 1)
    for k = 1, #more do count(tonumber(more[k]), call("LLEN", queue(lane, more[k]))) end
  end
  if lane[DELAYED] then
    local late = call("ZRANGE", LATE .. name, 0, MOST - 1)
    for k = 1, #late do count((unpack_("<i4", late[k])), 1) end
    local left = call("ZCARD", LATE .. name) - #late
    if left > 0 then count((unpack_("<i4", late[#late])), left) end
  end
end
local reply = {cursor}
for each, number in pairs(counts) do
  reply[#reply + 1], reply[#reply + 2] = each, number
end
return reply
