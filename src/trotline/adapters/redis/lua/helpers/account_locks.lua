-- An account goes out in one lease at a time, over all lanes, jobs and workers (docs/decisions/096).
--
--   S locks:POOL    hash  account -> the lease that has it, or had it last: token, prefix P of its job, worker and lane; and
--                         until when that lane lets others have it first (LOCK_FORM)
--   S crowd:POOL    zset  lane -> when it last found an account in use
--
-- The lease is the lock: the account is in use as long as P held:W has the token. So there is no counter that an
-- interrupted, repeated or deleted call could leave behind, and nothing has to be unlocked.
--
-- uses clock: call now
-- uses job_books: max min pack_ unpack_ P S
-- exports: account_locks

-- A lane looks again for an account in use after this; after more if many lanes do, so that they are no burden together.
local LOOK_AFTER, LANES_LOOKING, LOOK_AT_LATEST, LOOKED_WITHIN = 0.2, 20, 10, 30
-- The lane that had an account last waits for others so much longer than they rest.
local GRACE, OTHERS_FIRST = 0.3, 1

local made

local function make()
  -- stuck: prefixes of jobs whose dead workers have what we wait for.
  local locks, given, looks, noted = {stuck = {}}, {}, {}, {}
  local worker = ARGV[2]

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
  local function note_dead(prefix, holder)
    if prefix == P or noted[prefix] then return end
    local seen = tonumber(call("ZSCORE", prefix .. "workers", holder))
    if seen and seen < now - DEAD_AFTER then
      noted[prefix] = true
      locks.stuck[#locks.stuck + 1] = prefix
    end
  end

  -- Until when this lane does not get the account; nil: it is free.
  function locks.busy_until(pool, name, id, packed)
    if given[pool .. id] then return look_again_at(pool, name) end
    if not packed then return nil end
    local token, others_until, prefix, holder, lane = unpack_(LOCK_FORM, packed)
    if call("HEXISTS", prefix .. "held:" .. holder, token) == 1 then
      note_dead(prefix, holder)
      local again = look_again_at(pool, name)
      local wanted = min(again, now + OTHERS_FIRST) + GRACE
      if lane ~= name and wanted > others_until then
        packed = pack_(LOCK_FORM, token, wanted, #prefix, prefix, #holder, holder, #lane, lane)
        call("HSET", S .. "locks:" .. pool, id, packed)
      end
      return again
    end
    return lane == name and others_until > now and others_until or nil
  end

  function locks.lock(pool, name, id, token)
    given[pool .. id] = true
    call("HSET", S .. "locks:" .. pool, id, pack_(LOCK_FORM, token, 0, #P, P, #worker, worker, #name, name))
  end

  return locks
end

-- Made when they are needed: most calls have nothing to do with accounts. only_made: nil if they were not.
function account_locks(only_made)
  if not made and not only_made then made = make() end
  return made
end
