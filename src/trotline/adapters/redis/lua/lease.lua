#!lua flags=allow-oom
-- needs: job pace lanes graves workers
-- Hand out tasks that may start within the horizon, and do the housekeeping: rescue, promote.
--   KEYS[1] P job
--   ARGV[2] worker     ARGV[3] how many     ARGV[4] this call's name     ARGV[5] the last call, if its reply was lost
--   ARGV[6] share of retries     ARGV[7] patience with a lane that only fails
--   ARGV[8] shards     ARGV[9] this shard's number
--   gives now and next wake (microseconds; -1: never), the first token, and 1 if the job is over; then for each lane its
--   name, how many, and for each of those how long until it may start (microseconds) and its blob. Tokens go up by
--   the number of shards

local worker, limit, this_call, lost_call = ARGV[2], min(tonumber(ARGV[3]), 1000), ARGV[4], ARGV[5]
local share, patience = tonumber(ARGV[6]), tonumber(ARGV[7])
local shards, shard = tonumber(ARGV[8]), tonumber(ARGV[9])
local RESCUED, PROMOTED, BURIED = 2000, 1000, 2000

-- What a lost reply handed out goes back before anything else: nobody knows of it.
local function take_back_lost()
  local kept = call("HGET", P .. "calls", "l" .. worker)
  if not kept then return end
  local name, first, last = string.match(kept, "^(%S+) (%d+) (%d+)$")
  if name ~= lost_call then return end
  local lost, tokens = {}, {}
  for token = tonumber(first), tonumber(last), shards do
    local field = string.format("%.0f", token)
    local parcel = call("HGET", HELD .. worker, field)
    if parcel then
      lost[#lost + 1] = {token, parcel}
      call("HDEL", HELD .. worker, field)
    end
  end
  give_back(lost)
end

local function rescue_dead()
  local dead = call("ZRANGEBYSCORE", P .. "workers", "-inf", string.format("(%.17g", now - 15), "LIMIT", 0, 20)
  local rescued = 0
  for _, each in ipairs(dead) do
    if rescued < RESCUED then rescued = rescued + rescue(each) end
  end
end

local function promote_lane(lane)
  local late = LATE .. lane[NAME]
  local due = call("ZRANGEBYSCORE", late, "-inf", now, "LIMIT", 0, PROMOTED)
  for i = 1, #due do
    local level = unpack_("<i4", due[i])
    call("RPUSH", queue(lane, level), sub(due[i], 5))
    count_level(lane, level, 1)
  end
  if #due > 0 then call("ZREMRANGEBYRANK", late, 0, #due - 1) end
  lane[DELAYED] = lane[DELAYED] - #due
  book.delayed = book.delayed - #due
  touch(lane)
  local first = call("ZRANGE", late, 0, 0, "WITHSCORES")
  if first[2] then call("ZADD", P .. "due", first[2], lane[NAME]) else call("ZREM", P .. "due", lane[NAME]) end
  return #due
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
  names = call("ZRANGEBYSCORE", P .. "rest", "-inf", now, "LIMIT", 0, max(2 * limit, 64))
  if #names > 0 then
    load_lanes(names)
    for i = 1, #names do touch(lanes[names[i]]) end
  end
  for i = 1, #touched do place(touched[i]) end
  write_places()
end

local reply, held = {0, -1, 0, 0}, {}
local served = 0

local function hand_out(lane, level, blobs, start)
  local head = wrap(lane[NAME], level)
  for i = 1, #blobs do
    served = served + 1
    reply[#reply + 1] = floor((start - now) * 1e6 + 0.5)
    reply[#reply + 1] = blobs[i]
    held[2 * served - 1] = string.format("%.0f", (book.leases + served) * shards + shard)
    held[2 * served] = head .. blobs[i]
    start = start + lane[INTERVAL]
  end
  return start
end

-- Up to so many tasks of one priority of one lane.
local function serve(lane, priority, wanted)
  touch(lane)
  if given_up(lane, patience) then
    bury_waiting(lane, string.format("unreachable: lane given up after %.0f s of failures only", patience), BURIED)
    if waiting_in(lane) == 0 then forgive(lane) end
    return
  end
  local places, start = reserve(lane, wanted)
  local before, retries, header = served, 0, nil
  local at = LEVELS + 1
  while places > 0 and at < LEVELS + 2 * lane[LEVELS] do
    local level, count = lane[at], lane[at + 1]
    if floor(level / 2) > priority then break end
    local take = min(places, count)
    if level % 2 == 1 then take = min(take, floor(credit(lane)) - retries) end
    if take > 0 and floor(level / 2) == priority then
      local blobs = call("LPOP", queue(lane, level), take) or {}
      if not header then
        header = #reply + 2
        reply[header - 1], reply[header] = lane[NAME], 0
      end
      start = hand_out(lane, level, blobs, start)
      places = places - #blobs
      if level % 2 == 1 then retries = retries + #blobs end
      if #blobs < take then book.waiting = book.waiting - (count - #blobs) end
      count_level(lane, level, #blobs < take and -count or -take)
      if lane[at] == level then at = at + 2 end
    else
      at = at + 2
    end
  end
  local handed = served - before
  if handed == 0 then
    -- Whoever cannot be served must not look ready, or it would be asked for ever.
    not_before[lane] = now + 0.001
    return
  end
  reply[header] = handed
  lane[NEXT] = start
  lane[LEASED] = lane[LEASED] + handed
  book.turns = book.turns + 1
  lane[TURN] = book.turns
  spend(lane, handed - retries, retries, share)
end

-- Level by level: all lanes that may run at the best priority share the batch, then the next priority.
local function serve_all()
  while served < limit do
    local names = call("ZRANGE", P .. "ready", 0, limit - served - 1)
    if #names == 0 then return end
    load_lanes(names)
    local priority, same = floor(lanes[names[1]][SCORE] / TURNS), 1
    while same < #names and floor(lanes[names[same + 1]][SCORE] / TURNS) == priority do same = same + 1 end
    local each = math.ceil((limit - served) / same)
    for i = 1, same do
      local lane = lanes[names[i]]
      if served < limit then serve(lane, priority, min(each, limit - served)) end
      place(lane)
    end
    write_places()
  end
end

local function next_wake()
  local rest = call("ZRANGE", P .. "rest", 0, 0, "WITHSCORES")[2]
  local due = call("ZRANGE", P .. "due", 0, 0, "WITHSCORES")[2]
  local wake = min(tonumber(rest or "inf"), tonumber(due or "inf"))
  if wake == math.huge then return -1 end
  return floor(wake * 1e6)
end

call("ZADD", P .. "workers", now, worker)
if lost_call ~= "" then take_back_lost() end
rescue_dead()
promote()
if book.state == "running" or book.state == "draining" then serve_all() end
reply[1] = floor(now * 1e6 + 0.5)
reply[3] = (book.leases + 1) * shards + shard
if served > 0 then
  many("HSET", HELD .. worker, held)
  call("HSET", P .. "calls", "l" .. worker, this_call .. " " .. held[1] .. " " .. held[2 * served - 1])
  book.leases = book.leases + served
  book.leased = book.leased + served
  book.waiting = book.waiting - served
else
  reply[2] = next_wake()
  call("HSET", JOB, "idle", "1")
end
write_lanes()
-- What was promoted or rescued is news for others only if something of it is left.
woke = woke and served == limit
close_books()
if book.finished_at or book.state == "cancelled" then reply[4] = 1 end
return reply
