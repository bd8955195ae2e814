#!lua flags=allow-oom
-- Lease tasks that may start within the horizon, and do the housekeeping: rescue, promote.
--   KEYS[1] P job
--   ARGV[2] worker     ARGV[3] how many     ARGV[4] this call's name     ARGV[5] the first call without a reply
--   ARGV[6] share of retries     ARGV[7] seconds after which a failing lane is given up
--   ARGV[8] shards     ARGV[9] this shard's number     ARGV[10] maximum level, or ""
--   ARGV[11] chance in [0, 1)     ARGV[12] numbers of the queues that it asks for, of a job with a queue per route, or ""
--   ARGV[13] and after: the proxy pools that the worker serves; "" are direct connections
--   returns LeaseReply (lua_layouts.py); then for each lane its name, the number of tasks, the time until the first of them may
--   start (microseconds), that from one start to the next (nanoseconds), and the blobs. In a lane with a proxy pool: the
--   members and whether the site blocks us, and for each task the time until it may start (microseconds) and its blob.
--   With a limit of 0 only the housekeeping and LeaseReply
--
-- uses clock: call now
-- uses job_counters: sub find floor max min pack_ unpack_ JOB P book whole woke many close_books
-- uses other_jobs: job_of
-- uses shared_lanes: SPLIT
-- uses route_queues: plain_level levels_of
-- uses ready_lanes: line_key levels_key crowded write_lanes
-- uses worker_leases: HELD give_back rescue_leases
-- uses promote_delayed: promote
-- uses chains: chains
-- uses account_locks: account_locks
-- uses lease_times: keep_starts
-- uses lease_ready_lanes: limit shards shard served reply held high_water serve_level

local worker, this_call, lost_call, upto = ARGV[2], ARGV[4], ARGV[5], tonumber(ARGV[10])

-- A call's name is its client's name and an increasing number.
local function is_of(client, name)
  local whose, number = string.match(name, "^(%x+)%.(%d+)")
  return whose == client and tonumber(number)
end

local client, turn = string.match(this_call, "^(%x+)%.(%d+)$")
local kept = call("HGET", P .. "calls", "l" .. worker)
local last_turn = kept and client and is_of(client, kept)
if last_turn and tonumber(turn) < last_turn then
  -- A late call that its worker has given up and repeated: its leases would be lost.
  reply[REPLY_NOW] = floor(now * 1e6 + 0.5)
  return reply
end

-- First return the leases of lost replies, which no worker knows. Only the last lost call has any: each call returns
-- those of the one before it.
local function take_back_lost()
  local from = last_turn and is_of(client, lost_call)
  if not from or last_turn < from then return end
  local tokens = sub(kept, find(kept, " ", 1, true) + 1)
  if tokens == "" then return end
  local first, last = unpack_(TOKENS_FORM, tokens)
  local lost = {}
  for token = first, last, shards do
    local field = pack_(TOKEN_FORM, token)
    local parcel = call("HGET", HELD .. worker, field)
    if parcel then
      lost[#lost + 1] = {token = token, parcel = parcel}
      call("HDEL", HELD .. worker, field)
    end
  end
  give_back(lost)
end

-- The prefixes of jobs of which dead workers hold places, or accounts: such a job may have no other worker to rescue them.
local function stuck_jobs()
  local stuck = account_locks(true) and account_locks().stuck or {}
  for i = 1, #crowded do
    local claims = crowded[i][CLAIMS]
    for at = 1, #claims, CLAIM_SIZE do
      local owner = claims[at + CLAIM_OWNER]
      local job = owner ~= book.number and claims[at + CLAIM_RUNS] > 0 and job_of(owner)
      if job and not job.gone and not job.noted then
        job.noted = true
        local dead = call("ZCOUNT", job.prefix .. "workers", "-inf", string.format("(%.17g", now - DEAD_AFTER))
        if dead > 0 then stuck[#stuck + 1] = job.prefix end
      end
    end
  end
  return table.concat(stuck, " ")
end

-- The pools that the worker serves; false: direct connections.
local FIRST_POOL = 13
local pools = {}
for i = FIRST_POOL, #ARGV do pools[#pools + 1] = ARGV[i] ~= "" and ARGV[i] end

-- The queues that the worker asks for, not always the same first: of two with the same priority the first is served.
local queues = {}
for number in string.gmatch(ARGV[12], "%d+") do queues[#queues + 1] = tonumber(number) end
local first_queue = floor(ARGV[11] * #queues)

-- The best level with ready lanes of a pool.
local function best_of(pool)
  if not SPLIT then return tonumber(call("ZRANGE", levels_key(pool), "0", "0")[1]) end
  local best
  for i = 1, #queues do
    local first, last = levels_of(queues[(first_queue + i) % #queues + 1])
    local level = tonumber(call("ZRANGEBYSCORE", levels_key(pool), first, last, "LIMIT", 0, 1)[1])
    if level and (not best or plain_level(level) < plain_level(best)) then best = level end
  end
  return best
end

-- The best level with ready lanes of these pools, and the pool.
local function best_level()
  local best, best_pool
  for i = 1, #pools do
    local level = best_of(pools[i])
    if level and (not best or plain_level(level) < plain_level(best)) then best, best_pool = level, pools[i] end
  end
  return best, best_pool
end

-- The best level, and the number of its ready lanes.
local function best_left()
  while true do
    local level, pool = best_level()
    if not level then return false, 0 end
    local length = call("LLEN", line_key(level, pool))
    if length > 0 then return plain_level(level), length end
    call("ZREM", levels_key(pool), level)
  end
end

local function first_score(key)
  local _, score = unpack(call("ZRANGE", key, 0, 0, "WITHSCORES"), 1, 2)
  return tonumber(score) or math.huge
end

-- When leases of another worker have to be rescued, should it not beat again. Of many workers the others look often enough.
local LOOKED_AT, AGAIN, HELD_UP = 10, 1, 4
local function next_death()
  if book.leased == 0 then return math.huge end
  local oldest = call("ZRANGE", P .. "workers", 0, LOOKED_AT - 1, "WITHSCORES")
  for i = 1, #oldest, 2 do
    if oldest[i] ~= worker and call("EXISTS", HELD .. oldest[i]) == 1 then
      return max(now + AGAIN, oldest[i + 1] + DEAD_AFTER)
    end
  end
  return math.huge
end

local function next_wake()
  local wake = min(first_score(P .. "rest") / 1000, first_score(P .. "due"), next_death())
  -- Something holds them up, such as leases of another job's dead workers.
  if book.waiting > book.delayed then wake = min(wake, now + HELD_UP) end
  if wake == math.huge then return -1 end
  return floor(wake * 1e6)
end

-- Chains with steps to bury or to revive. The job's budget: pages that may have ended or be leased, and bytes that may have been read, in this shard. And its
-- high water, of which each shard has its part.
local function spent()
  local pages, bytes, mark, broken =
    unpack(call("HMGET", JOB, "most_pages", "most_bytes", "high_water", "broken"), 1, 4)
  if broken then chains().tend() end
  -- What waits on shelves is not in this server's memory.
  high_water = tonumber(mark or (book.shelf and math.huge) or HIGH_WATER) / shards
  local ended = book.done + book.dead
  if pages then limit = min(limit, max(0, tonumber(pages) - ended - book.leased)) end
  if bytes and tonumber(call("HGET", P .. "tallies", "bytes") or 0) >= tonumber(bytes) then
    limit = 0
    return true
  end
  return pages and ended >= tonumber(pages)
end

call("ZADD", P .. "workers", now, worker)
if lost_call ~= "" then take_back_lost() end
rescue_leases()
promote()
local over = spent()
if book.state == "running" or book.state == "draining" then
  while served < limit do
    local level, pool = best_level()
    if not level or (upto and plain_level(level) > upto) then break end
    serve_level(level, pool)
  end
  if shards > 1 then reply[REPLY_BEST], reply[REPLY_LINE] = best_left() end
end
reply[REPLY_NOW], reply[REPLY_STUCK] = floor(now * 1e6 + 0.5), stuck_jobs()
reply[REPLY_TOKEN] = (book.leases + 1) * shards + shard
local handed_out
if served > 0 then
  many("HSET", HELD .. worker, held)
  keep_starts(worker, HELD .. worker, shards)
  handed_out = held[1] .. held[2 * served - 1]
  book.leases = book.leases + served
  book.leased = book.leased + served
  book.waiting = book.waiting - served
else
  if lost_call ~= "" then handed_out = "" end
  reply[REPLY_WAKE] = next_wake()
  call("HSET", JOB, "idle", "1")
end
write_lanes(true)
-- Promoted or rescued tasks wake other workers only if some are left.
woke = woke and served == limit
close_books()
if handed_out then call("HSET", P .. "calls", "l" .. worker, this_call .. " " .. handed_out) end
local empty = book.sealed and book.waiting + book.leased == 0
if book.state == "cancelled" or (whole and book.finished_at) or (not whole and empty) or over then
  reply[REPLY_OVER] = 1
end
return reply
