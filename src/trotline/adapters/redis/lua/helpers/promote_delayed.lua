-- Promotes delayed tasks that are due, and rested lanes; see job_lanes.lua for the keys.
--
-- uses clock: call now
-- uses job_counters: sub unpack_ P book
-- uses shared_lanes: touched touches
-- uses job_lanes: LATE lanes load_lanes touch
-- uses priority_levels: open_level queue
-- uses ready_lanes: join_line line_up line_up_touched write_lines
-- exports: promote

-- Of one call: lanes with delayed tasks, tasks of a lane, lanes that rested.
local LANES_AT_ONCE, PROMOTED = 200, 1000
-- Bytes of the stamp in front of the name of a lane that rests.
local STAMP_BYTES = 4

local function promote_lane(lane)
  local late = LATE .. lane[NAME]
  local due = call("ZRANGEBYSCORE", late, "-inf", now, "LIMIT", 0, PROMOTED)
  for i = 1, #due do
    local level, at = unpack_("<i4", due[i])
    call("RPUSH", queue(lane, level), sub(due[i], at))
    open_level(lane, level)
  end
  if #due > 0 then call("ZREMRANGEBYRANK", late, 0, #due - 1) end
  book.delayed = book.delayed - #due
  touch(lane)
  local _, next_due = unpack(call("ZRANGE", late, 0, 0, "WITHSCORES"), 1, 2)
  if next_due then
    call("ZADD", P .. "due", next_due, lane[NAME])
  else
    call("ZREM", P .. "due", lane[NAME])
    lane[DELAYED] = false
  end
  return #due
end

local function promote_tasks()
  local names = call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, LANES_AT_ONCE)
  if #names == 0 then return end
  load_lanes(names)
  local promoted = 0
  for _, name in ipairs(names) do
    if promoted < PROMOTED then promoted = promoted + promote_lane(lanes[name]) end
  end
end

local function look_at(names)
  load_lanes(names)
  for i = 1, #names do line_up(lanes[names[i]], true) end
end

local function promote_lanes()
  local rested = call("ZRANGEBYSCORE", P .. "rest", "-inf", now * 1000, "LIMIT", 0, PROMOTED)
  if #rested == 0 then return end
  call("ZREMRANGEBYRANK", P .. "rest", 0, #rested - 1)
  local looks = {}
  for i = 1, #rested do
    local level, stamp, at = unpack_("<i4I4", rested[i])
    if stamp == 0 then
      looks[#looks + 1] = sub(rested[i], at)
    else
      join_line(level, sub(rested[i], at), sub(rested[i], at - STAMP_BYTES))
    end
  end
  look_at(looks)
end

function promote()
  promote_tasks()
  for i = 1, touches do line_up_touched(touched[i]) end
  promote_lanes()
  write_lines()
end
