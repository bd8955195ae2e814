-- An account goes out in one lease at a time, over all lanes, jobs and workers (docs/decisions/096).
--
--   S locks:POOL    hash  account -> msgpack: the lease that has it, or had it last (token, prefix P of its job, worker and
--                         lane), until when that lane lets others have it first, and lanes that wait for it, with the
--                         prefix of a job of each, first come first served
--   S crowd:POOL    zset  lane -> when it last found an account in use
--
-- The lease is the lock: the account is in use as long as P held:W has the token. So there is no counter that an
-- interrupted, repeated or deleted call could leave behind, and nothing has to be unlocked.
--
-- uses clock: call now
-- uses job_counters: max min P S
-- exports: account_locks

-- A lane looks again for an account in use after this; after more if many lanes do, so that they are no burden together.
local LOOK_AFTER, LANES_LOOKING, LOOK_AT_LATEST, LOOKED_WITHIN = 0.2, 20, 10, 30
-- The lane that had an account last waits for others so much longer than they rest.
local GRACE, OTHERS_FIRST = 0.3, 1
-- Values of the waiting lanes that an account knows: two for each.
local MOST_WAITING = 32

local made

local function make()
  -- stuck: prefixes of jobs whose dead workers have what we wait for.
  local locks, given, looks, noted = {stuck = {}}, {}, {}, {}
  local worker = ARGV[2]

  local function read(packed)
    local is_read, lock = pcall(cmsgpack.unpack, packed or "")
    return is_read and type(lock) == "table" and type(lock.waiting) == "table" and lock or nil
  end

  local function write(pool, id, lock)
    call("HSET", S .. "locks:" .. pool, id, cmsgpack.pack(lock))
  end

  local function look_again_at(pool, name)
    local moment = looks[name]
    if not moment then
      local key = S .. "crowd:" .. pool
      call("ZADD", key, now, name)
      call("ZREMRANGEBYSCORE", key, "-inf", now - LOOKED_WITHIN)
      moment = now + min(LOOK_AT_LATEST, LOOK_AFTER * max(1, call("ZCARD", key) / LANES_LOOKING))
      looks[name] = moment
    end
    return moment
  end

  -- Its own job may have no other worker to rescue the lease.
  local function note_dead(lock)
    if lock.job == P or noted[lock.job] then return end
    local seen = tonumber(call("ZSCORE", lock.job .. "workers", lock.worker))
    if seen and seen < now - DEAD_AFTER then
      noted[lock.job] = true
      locks.stuck[#locks.stuck + 1] = lock.job
    end
  end

  -- Is that new?
  local function wait_in_turn(lock, name)
    local waiting = lock.waiting
    for i = 2, #waiting, 2 do
      if waiting[i] == name then return false end
    end
    if #waiting >= MOST_WAITING then return false end
    waiting[#waiting + 1], waiting[#waiting + 2] = P, name
    return true
  end

  -- Until when this lane does not get the account; nil: it is free.
  function locks.busy_until(pool, name, id, packed)
    if given[pool .. id] then return look_again_at(pool, name) end
    local lock = read(packed)
    if not lock then return nil end
    if call("HEXISTS", lock.job .. "held:" .. lock.worker, lock.token) == 1 then
      note_dead(lock)
      local again = look_again_at(pool, name)
      local wanted = min(again, now + OTHERS_FIRST) + GRACE
      if lock.lane ~= name and (wait_in_turn(lock, name) or wanted > lock.others_until) then
        lock.others_until = max(wanted, lock.others_until)
        write(pool, id, lock)
      end
      return again
    end
    if lock.lane ~= name or lock.others_until <= now then return nil end
    if wait_in_turn(lock, name) then write(pool, id, lock) end
    return lock.others_until
  end

  function locks.lock(pool, name, id, token)
    local waiting, before = {}, read(call("HGET", S .. "locks:" .. pool, id))
    for i = 1, before and #before.waiting or 0, 2 do
      if before.waiting[i + 1] ~= name then
        waiting[#waiting + 1], waiting[#waiting + 2] = before.waiting[i], before.waiting[i + 1]
      end
    end
    given[pool .. id] = true
    write(pool, id, {token = token, job = P, worker = worker, lane = name, others_until = 0, waiting = waiting})
  end

  -- The account is free: the first lane that waits for it, and the prefix of its job; nil if none does.
  function locks.next_in_turn(pool, id)
    local lock = read(call("HGET", S .. "locks:" .. pool, id))
    if not lock or #lock.waiting == 0 then return nil, nil end
    local prefix, name = table.remove(lock.waiting, 1), table.remove(lock.waiting, 1)
    write(pool, id, lock)
    return name, prefix
  end

  return locks
end

-- Made when they are needed: most calls have nothing to do with accounts. only_made: nil if they were not.
function account_locks(only_made)
  if not made and not only_made then made = make() end
  return made
end
