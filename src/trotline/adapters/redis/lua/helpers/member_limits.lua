-- What holds for a member of a proxy pool over all lanes: failures of its own, its limits, and accounts in use.
--
--   S faults:POOL   hash  member -> its own failures in a row, and until when it rests for all lanes
--   S load:POOL     hash  member -> its next start, its visits, and its starts since a moment, in pools with limits per
--                         member (LOAD_FORM)
--
-- part of pool_members
-- uses clock: call now
-- uses job_counters: sub max min pack_ unpack_ S many
-- uses account_locks: account_locks
-- uses proxy_ring: proxy_ring
-- uses lane_pool: pool_of
-- uses proxy_pools: known_pools pool_named filled_up
-- exports: begin_limits member_chance look_up held_up count_start count_fault clear_all_faults unload rest_of_dead

-- A member at its limit over all lanes is looked at again after this.
local FULL_FOR = 0.2
-- Of a generator of random numbers: scripts have none of their own, so one number comes with the call.
local MULTIPLIER, INCREMENT, CHANCE = 16807, 0.123456789, 11
local no_faults, no_load -- once
local luck_left

function begin_limits()
  luck_left = tonumber(ARGV[CHANCE]) or 0
  no_faults, no_load = no_faults or pack_(FAULTS_FORM, 0, 0), no_load or pack_(LOAD_FORM, 0, 0, 0, 0)
end

function member_chance()
  luck_left = (luck_left * MULTIPLIER + INCREMENT) % 1
  return luck_left
end

-- What the pool knows of these members: their numbers and weights, faults, loads and locks; nil where that need not be known.
function look_up(pool, packed)
  local ids = {}
  for at = 1, #packed, MEMBER_BYTES do ids[#ids + 1] = sub(packed, at, at + MEMBER_ID_BYTES - 1) end
  local function asked(is_needed, key)
    return is_needed and call("HMGET", S .. key .. pool.name, unpack(ids, 1, #ids)) or nil
  end
  return asked(not pool.alike, "pools:"), asked(pool.faulty, "faults:"), asked(pool.limited, "load:"),
    asked(pool.accounts, "locks:")
end

local function read_load(load)
  return unpack_(LOAD_FORM, load and filled_up(load, LOAD_BYTES) or no_load)
end

-- Until when a member is at its limit over all lanes; nil: it is not.
local function loaded_until(name, pool, member, load, lock, latest)
  local rules, busy = pool.rules, nil
  local next_start, visits, uses, since = read_load(load)
  local most, most_uses = rules[RULE_MEMBER_CONCURRENCY], rules[RULE_MEMBER_USES]
  if most_uses > 0 and uses >= most_uses then next_start = max(next_start, since + rules[RULE_USES_WINDOW]) end
  if next_start > latest then busy = next_start end
  if pool.accounts then
    -- One that is not due in this lane is not waited for.
    if not busy and member[MEMBER_DUE] <= latest then
      busy = account_locks().busy_until(pool.name, name, member[MEMBER_ID], lock)
    end
  elseif most > 0 and visits >= most then
    busy = max(busy or 0, now + FULL_FOR)
  end
  member.next_start, member.visits, member.starts, member.since = next_start, visits, uses, since
  return busy
end

-- Until when a member rests for all lanes, or is at its limit over all lanes; nil: it may go out.
function held_up(name, pool, member, faults, load, lock, latest)
  local busy
  if faults then
    local _, down_until = unpack_(FAULTS_FORM, faults)
    if down_until > now then busy = down_until end
  end
  local loaded = pool.limited and loaded_until(name, pool, member, load, lock, latest)
  return loaded and max(busy or 0, loaded) or busy
end

-- A member that `held_up` has looked at goes out.
function count_start(pool, member, start)
  local rules, starts, since = pool.rules, 0, 0
  if rules[RULE_MEMBER_USES] > 0 then
    starts, since = member.starts + 1, member.since
    if since == 0 or start >= since + rules[RULE_USES_WINDOW] then starts, since = 1, start end
  end
  -- The visits of accounts are not counted: account_locks.lua.
  local visits = pool.accounts and 0 or member.visits + 1
  local load = pack_(LOAD_FORM, start + rules[RULE_MEMBER_INTERVAL], visits, starts, since)
  call("HSET", S .. "load:" .. pool.name, member[MEMBER_ID], load)
end

local function clear_faults(pool)
  many("HDEL", S .. "faults:" .. pool.name, pool.cleared)
  pool.cleared = {}
end

function clear_all_faults()
  for _, pool in pairs(known_pools) do
    if pool then clear_faults(pool) end
  end
end

-- Those that work again are cleared together: at the end of the call, or before the next fault is counted.
function count_fault(pool, id, result)
  local key = S .. "faults:" .. pool.name
  if result == RESULT_FAULT then
    clear_faults(pool)
    local faults = unpack_(FAULTS_FORM, call("HGET", key, id) or no_faults)
    faults = min(MOST_FAULTS, faults + 1)
    call("HSET", key, id, pack_(FAULTS_FORM, faults, now + proxy_ring().down_for(faults, member_chance())))
    pool.faulty, pool.plain = true, false
  elseif result ~= RESULT_UNUSED and result ~= RESULT_UNCLEAR then
    pool.cleared[#pool.cleared + 1] = id
  end
end

-- Its visit is over.
function unload(pool, member)
  local key = S .. "load:" .. pool.name
  local next_start, visits, starts, since = read_load(call("HGET", key, member[MEMBER_ID]))
  call("HSET", key, member[MEMBER_ID], pack_(LOAD_FORM, next_start, max(0, visits - 1), starts, since))
end

-- Its worker was silent for too long, and may still send: it rests for all lanes.
function rest_of_dead(name, packed)
  local pool, id = pool_named(pool_of(name)), sub(packed, 1, MEMBER_ID_BYTES)
  local rest = pool and pool.rules[RULE_REST_OF_DEAD] or 0
  if rest == 0 then return end
  local key = S .. "load:" .. pool.name
  local next_start, visits, starts, since = read_load(call("HGET", key, id))
  call("HSET", key, id, pack_(LOAD_FORM, max(next_start, now + rest), visits, starts, since))
end
