#!lua flags=allow-oom
-- needs: job other_jobs pace sharing shared lanes levels lines graves workers
-- Hand out tasks that may start within the horizon, and do the housekeeping: rescue, promote.
--   KEYS[1] P job
--   ARGV[2] worker     ARGV[3] how many     ARGV[4] this call's name     ARGV[5] the first whose reply was lost
--   ARGV[6] share of retries     ARGV[7] patience with a lane that only fails
--   ARGV[8] shards     ARGV[9] this shard's number     ARGV[10] no level beyond this one, or ""
--   gives now and next wake (microseconds; -1: never), the first token, and 1 if the job is over (as far as this shard
--   knows); of several shards the best level that is left and how many lanes stand in line there; the prefixes of jobs
--   whose dead workers are in our way; then for each lane its name, how many, and for each of those how long until it
--   may start (microseconds) and its blob. Tokens go up by the number of shards. Asked for nothing, it does the
--   housekeeping and tells

local worker, limit, this_call, lost_call = ARGV[2], min(tonumber(ARGV[3]), 1000), ARGV[4], ARGV[5]
local share, patience = tonumber(ARGV[6]), tonumber(ARGV[7])
local shards, shard, upto = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local PROMOTED, BURIED = 1000, 500
local QUANTUM, MANY = 8, 32
local HIGH_WATER = 1000000
-- How far apart the starts of one lane's turn may be. More would wait with the worker while other lanes could run, fewer
-- cost the server more, and the worker a connection for every page. Who asks for many has room for those that wait.
local together = limit >= MANY and HORIZON or 0.1

-- A call's name is its client's and a number that goes up.
local function is_of(client, name)
  local whose, number = string.match(name, "^(%x+)%.(%d+)")
  return whose == client and tonumber(number)
end

local client, turn = string.match(this_call, "^(%x+)%.(%d+)$")
local kept = call("HGET", P .. "calls", "l" .. worker)
local last_turn = kept and client and is_of(client, kept)
if last_turn and tonumber(turn) < last_turn then
  -- It was under way for so long that its worker gave it up and asked again: nobody would know of what it handed out.
  return {floor(now * 1e6 + 0.5), -1, 0, 0, false, 0, ""}
end

-- What lost replies handed out goes back before anything else: nobody knows of it. It is the last of them that did:
-- each takes back what the one before it handed out.
local function take_back_lost()
  local from = last_turn and is_of(client, lost_call)
  if not from or last_turn < from then return end
  local at = string.find(kept, " ", 1, true) + 1
  if #kept < at + 11 then return end
  local first, last = unpack_(">I6I6", kept, at)
  local lost = {}
  for token = first, last, shards do
    local field = pack_(">I6", token)
    local parcel = call("HGET", HELD .. worker, field)
    if parcel then
      lost[#lost + 1] = {token, parcel}
      call("HDEL", HELD .. worker, field)
    end
  end
  give_back(lost)
end

local function promote_lane(lane)
  local late = LATE .. lane[NAME]
  local due = call("ZRANGEBYSCORE", late, "-inf", now, "LIMIT", 0, PROMOTED)
  for i = 1, #due do
    local level = unpack_("<i4", due[i])
    call("RPUSH", queue(lane, level), sub(due[i], 5))
    open_level(lane, level)
  end
  if #due > 0 then call("ZREMRANGEBYRANK", late, 0, #due - 1) end
  book.delayed = book.delayed - #due
  touch(lane)
  local first = call("ZRANGE", late, 0, 0, "WITHSCORES")
  if first[2] then
    call("ZADD", P .. "due", first[2], lane[NAME])
  else
    call("ZREM", P .. "due", lane[NAME])
    lane[DELAYED] = false
  end
  return #due
end

local function look_at(names)
  load_lanes(names)
  for i = 1, #names do line_up(lanes[names[i]], true) end
end

-- Tasks and lanes whose time has come.
local function promote()
  local names = call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, 200)
  if #names > 0 then
    load_lanes(names)
    local promoted = 0
    for _, name in ipairs(names) do
      if promoted < PROMOTED then promoted = promoted + promote_lane(lanes[name]) end
    end
  end
  for i = 1, touches do line_up(touched[i]) end
  local rested = call("ZRANGEBYSCORE", P .. "rest", "-inf", now * 1000, "LIMIT", 0, PROMOTED)
  if #rested > 0 then
    call("ZREMRANGEBYRANK", P .. "rest", 0, #rested - 1)
    local looks = {}
    for i = 1, #rested do
      local level, stamp = unpack_("<i4I4", rested[i])
      if stamp == 0 then
        looks[#looks + 1] = sub(rested[i], 9)
      else
        local line, entry = lines[level], sub(rested[i], 5)
        if line then line[#line + 1] = entry else lines[level] = {entry} end
      end
    end
    look_at(looks)
  end
  write_lines()
end

local reply, held = {0, -1, 0, 0, false, 0, ""}, {}
local served = 0

local function hand_out(lane, level, blobs, start)
  local head, interval, at, count = wrap(lane[NAME], level), lane[INTERVAL], #reply, #blobs
  local token = (book.leases + served) * shards + shard
  reply[at + 1], reply[at + 2] = lane[NAME], count
  at = at + 2
  for i = 1, count do
    local blob = blobs[i]
    -- Whole microseconds: a reply has no fractions.
    reply[at + 1], reply[at + 2] = (start - now) * 1e6 + 0.5, blob
    at = at + 2
    token = token + shards
    held[2 * (served + i) - 1], held[2 * (served + i)] = pack_(">I6", token), head .. blob
    start = start + interval
  end
  served = served + count
  lane[NEXT] = start
  run(lane, count)
  local claims, mine = lane[CLAIMS], lane[MINE]
  claims[mine + USED], claims[mine + WANTS] = now, 0
end

-- Places that workers of other jobs hold who are silent for long. Their own job may have nobody else to notice.
local stuck = {}

local function note_stuck(lane)
  local claims = lane[CLAIMS]
  for at = 1, #claims, CLAIM do
    local job = claims[at] ~= book.number and claims[at + RUNS] > 0 and job_of(claims[at])
    if job and not job.noted then
      job.noted = true
      local dead = call("ZCOUNT", job.prefix .. "workers", "-inf", string.format("(%.17g", now - SILENT))
      if dead > 0 then stuck[#stuck + 1] = job.prefix end
    end
  end
end

-- Above the job's high water what came last goes first: a site is then read branch by branch, and what waits grows with
-- its depth and not with its breadth.
local high_water = HIGH_WATER

local function pop(key, count)
  local deed = book.waiting - served > high_water and "RPOP" or "LPOP"
  if count == 1 then return {call(deed, key) or nil} end
  return call(deed, key, count) or {}
end

-- Up to so many tasks of one level of a lane.
local function serve(lane, at, wanted)
  local hopeless = lane[SINCE] > 0 and given_up(lane, patience)
  if hopeless then
    bury_waiting(lane, hopeless, BURIED)
    if not has_waiting(lane) then
      forgive(lane)
      change(lane)
    end
    not_before[lane] = now + 0.001
    return
  end
  claim(lane, bounds_of(lane[NAME]))
  change(lane)
  local meets = is_shared(lane)
  local other = meets and yields_until(lane) or 0
  local places, start = 0, 0
  if other == 0 then places, start = reserve(lane, portion(lane, wanted), HEEDS) end
  local level = lane[at]
  local retry = level % 2 == 1
  if retry then places = min(places, floor(credit(lane))) end
  if places <= 0 then
    -- Whoever cannot be served must not stand in line, or it would be asked for ever.
    not_before[lane] = max(now + 0.001, other)
    return
  end
  local key = queue(lane, level)
  local blobs = pop(key, places)
  local count = #blobs
  if count < places or call("LLEN", key) == 0 then close_level(lane, at) end
  if count == 0 then return end
  hand_out(lane, level, blobs, start)
  if meets then
    postpone(lane)
    -- One turn a call: others may come in between.
    not_before[lane] = now + 0.001
  end
  if retry then spend(lane, 0, count, share) else spend(lane, count, 0, share) end
end

-- How many tasks a lane gives at one turn while others stand in line.
local function portion(lane)
  local interval = lane[INTERVAL]
  if interval * (QUANTUM - 1) <= together then return QUANTUM end
  return 1 + floor(together / interval)
end

local visited = 0

-- Lanes that stand in line at a level share what is left of the batch.
local function serve_level(level)
  -- As many lanes as will be needed, by what those before them gave: one that is popped and not needed would have to be
  -- put back.
  local wanted = ceil((limit - served) / max(1, visited > 0 and served / visited or QUANTUM))
  local line = call("LPOP", LINE .. level, wanted)
  if not line then
    call("ZREM", P .. "levels", level)
    return
  end
  local names, count = {}, #line
  for i = 1, count do names[i] = sub(line[i], 5) end
  local own, shared = fetch(LANES, names), fetch(SHARED, names)
  popped, popped_at, visited = {}, level, visited + count
  for i = 1, count do
    local name = names[i]
    local lane = lanes[name] or own[i] and read_lane(name, own[i], shared[i])
    local at = lane and find_level(lane, level)
    if at and lane[at + 1] == unpack_("<I4", line[i]) then
      lane[at + 1], lane[WAKE], popped[lane] = 0, 0, line[i]
      touch(lane)
      if lane[STATE] ~= PAUSED then
        local left, after = limit - served, count - i
        local most = after == 0 and left or ceil(left / (after + 1))
        if count == wanted and most > 1 then most = min(most, portion(lane)) end
        serve(lane, at, most)
      end
      line_up(lane)
    end
  end
  popped = {}
  write_lines()
end

-- The best level in which lanes stand in line, and how many.
local function best_left()
  while true do
    local level = tonumber(call("ZRANGE", P .. "levels", 0, 0)[1])
    if not level then return false, 0 end
    local length = call("LLEN", LINE .. level)
    if length > 0 then return level, length end
    call("ZREM", P .. "levels", level)
  end
end

local function next_wake()
  local rest = call("ZRANGE", P .. "rest", 0, 0, "WITHSCORES")[2]
  local due = call("ZRANGE", P .. "due", 0, 0, "WITHSCORES")[2]
  local wake = min(rest and rest / 1000 or math.huge, due and tonumber(due) or math.huge)
  if wake == math.huge then return -1 end
  return floor(wake * 1e6)
end

-- The job's budget: pages that may have ended or be leased, and bytes that may have been read, in this shard. And its
-- high water, of which each shard has its part.
local function spent()
  local marks = call("HMGET", JOB, "most_pages", "most_bytes", "high_water")
  high_water = tonumber(marks[3] or HIGH_WATER) / shards
  local ended = book.done + book.dead
  if marks[1] then limit = min(limit, max(0, tonumber(marks[1]) - ended - book.leased)) end
  if marks[2] and tonumber(call("HGET", P .. "tallies", "bytes") or 0) >= tonumber(marks[2]) then
    limit = 0
    return true
  end
  return marks[1] and ended >= tonumber(marks[1])
end

call("ZADD", P .. "workers", now, worker)
if lost_call ~= "" then take_back_lost() end
rescue_dead()
promote()
local over = spent()
if book.state == "running" or book.state == "draining" then
  while served < limit do
    local level = tonumber(call("ZRANGE", P .. "levels", 0, 0)[1])
    if not level or (upto and level > upto) then break end
    serve_level(level)
  end
  if shards > 1 then reply[5], reply[6] = best_left() end
end
reply[1] = floor(now * 1e6 + 0.5)
for i = 1, #crowded do note_stuck(crowded[i]) end
reply[7] = table.concat(stuck, " ")
reply[3] = (book.leases + 1) * shards + shard
local handed_out
if served > 0 then
  many("HSET", HELD .. worker, held)
  handed_out = held[1] .. held[2 * served - 1]
  book.leases = book.leases + served
  book.leased = book.leased + served
  book.waiting = book.waiting - served
else
  if lost_call ~= "" then handed_out = "" end
  reply[2] = next_wake()
  call("HSET", JOB, "idle", "1")
end
write_lanes(true)
-- What was promoted or rescued is news for others only if something of it is left.
woke = woke and served == limit
close_books()
if handed_out then call("HSET", P .. "calls", "l" .. worker, this_call .. " " .. handed_out) end
local empty = book.sealed and book.waiting + book.leased == 0
if book.state == "cancelled" or (whole and book.finished_at) or (not whole and empty) or over then
  reply[4] = 1
end
return reply
