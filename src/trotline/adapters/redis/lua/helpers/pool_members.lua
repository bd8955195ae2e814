-- The members of proxy pools: who goes out next in a lane, and where they wait. rules/proxy_ring.py has the rules.
--
--   S pool:POOL     hash  version, rules (PoolRules, packed), last (the number of the member added last), changes (how
--                         often it was registered), alike (1 while no member was ever removed and all have full weight:
--                         then members need not be looked up in the pool)
--   S pools:POOL    hash  member (6 bytes) -> its number and weight     S added:POOL   zset  the same, and
--                         those that were removed -> number
--   S registered    hash  pool -> version
--   S ring:LANE     list  members that may go out, the next one first (packed, see Member in layouts.py)
--   S resting:LANE  zset  members in quarantine, or due much later -> due
--   S rings         hash  lane -> what is known of its ring (Ring in layouts.py)
--   S faults:POOL   hash  member -> its own failures in a row, and until when it rests for all lanes
--   S load:POOL     hash  member -> its next start, its visits, and its starts since a moment, in pools with limits per
--                         member (LOAD_FORM)
--   S sessions:POOL hash  account -> what its last holder saved (save_session.lua)
--   S wanting:POOL  hash  lane -> prefixes of jobs that wait there for any member
--
--   S removed:POOL  hash  member that was removed -> its number
--
-- A member is in one place of a lane: ring, resting, or out, at the end of the lease's parcel (graves.lua). One that was
-- removed from the pool rests where it is met, and comes back if it is added again: then it has the same number. One with
-- an unknown number is dropped.
--
-- Members that go to the tail of a ring are pushed together: at the end of the call, or before the ring is read. A member
-- that goes out stays packed, unless the rules or the pool have something to say of it.
--
-- uses clock: call now
-- uses job_books: sub ceil max min pack_ unpack_ P S many
-- uses lane_pool: pool_of pool_parts
-- uses account_locks: account_locks
-- uses proxy_ring: proxy_ring
-- uses wake_lane: wake_lane
-- exports: members write_rings

-- Of one call and lane: members looked at beyond those wanted, members whose rest has ended, quarantines lifted.
local LOOKS, COME_BACK, LIFTED = 32, 200, 500
-- A member at its limit over all lanes is looked at again after this.
local FULL_FOR = 0.2
-- Of a generator of random numbers: scripts have none of their own, so one number comes with the call.
local MULTIPLIER, INCREMENT, CHANCE = 16807, 0.123456789, 11
-- A member that was removed from its pool rests for a day at a time.
local DAY = 86400
local made -- once

-- A value that an older version wrote is shorter: zeros stand for what it does not have.
local function filled(packed, size)
  return #packed < size and packed .. string.rep("\0", size - #packed) or packed
end

local function make()
  -- The end of what the pool knows of a member (KNOWN_FORM), behind its number.
  local FULL_WEIGHT = string.char(MOST_WEIGHT)
  local NO_MEMBER, NO_FAULTS, NO_LOAD = pack_(KNOWN_FORM, 0, 0), pack_(FAULTS_FORM, 0, 0), pack_(LOAD_FORM, 0, 0, 0, 0)

  local ring_rules, members = proxy_ring(), {}
  local pools, rings, changed
  -- Lane -> packed members for the tail of its ring. Lanes to which members came back, and those in which one may go out
  -- sooner than was known.
  local tails, returned, sooner
  local luck_left

  -- A call begins: what the one before it knew is forgotten.
  function members.begin()
    pools, rings, changed, tails, returned, sooner = {}, {}, {}, {}, {}, {}
    luck_left = tonumber(ARGV[CHANCE]) or 0
  end

  local function chance()
    luck_left = (luck_left * MULTIPLIER + INCREMENT) % 1
    return luck_left
  end

  local function pool_named(name)
    local pool = pools[name]
    if pool == nil then
      local packed, last, changes, alike =
        unpack(call("HMGET", S .. "pool:" .. name, "rules", "last", "changes", "alike"), 1, 4)
      pool = packed and {name = name, last = tonumber(last), rules = {unpack_(RULES_FORM, filled(packed, RULES_BYTES))}} or false
      if pool then pool.changes = tonumber(changes) or 0 end
      if pool then
        pool.faulty = call("EXISTS", S .. "faults:" .. name) == 1
        pool.accounts = sub(name, 1, 1) == ACCOUNTS
        -- None of these is negative. They need the load of each member.
        pool.limited = pool.accounts or pool.rules[RULE_MEMBER_INTERVAL] + pool.rules[RULE_MEMBER_CONCURRENCY]
          + pool.rules[RULE_MEMBER_USES] + pool.rules[RULE_REST_OF_DEAD] > 0
        pool.alike, pool.cleared = alike == "1", {}
      end
      pools[name] = pool
    end
    return pool
  end

  local function read_ring(packed)
    return packed and #packed == RING_BYTES and {unpack_(RING_FORM, packed)}
      or {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ring_rules.not_tested}
  end

  -- The rings of these lanes, read together.
  function members.read_rings(names)
    for from = 1, #names, 1000 do
      local found = call("HMGET", S .. "rings", unpack(names, from, min(#names, from + 999)))
      for i = 1, #found do
        local name = names[from + i - 1]
        rings[name] = rings[name] or read_ring(found[i])
      end
    end
  end

  function members.ring_of(name)
    local ring = rings[name]
    if not ring then
      ring = read_ring(call("HGET", S .. "rings", name))
      rings[name] = ring
    end
    return ring
  end

  -- Does the site block all of them?
  function members.site_blocked(name)
    return members.ring_of(name)[RING_BLOCKED_AT] > 0
  end

  local function change(name) changed[name] = true end

  -- Can the lane be dealt members that it never had? Then it does not wait for one that is out.
  local function has_more(name)
    local pool, ring = pool_named(pool_of(name)), members.ring_of(name)
    return pool and ring[RING_DEALT] < pool.last and ring[RING_CHANGES] == pool.changes
  end

  local function push_tail(name)
    local tail, length = tails[name], 0
    if not tail then return end
    tails[name] = nil
    for from = 1, #tail, 1000 do length = call("RPUSH", S .. "ring:" .. name, unpack(tail, from, min(#tail, from + 999))) end
    if length == #tail and not has_more(name) then sooner[name] = true end
  end

  local function push_tails()
    for name in pairs(tails) do push_tail(name) end
  end

  local function put_at_tail(name, packed)
    local tail = tails[name]
    if tail then tail[#tail + 1] = packed else tails[name] = {packed} end
  end

  -- Those from a place on, as they were. A member is packed while the rules have nothing to say of it (is_plain).
  local function put_at_head(name, some, from)
    if from > #some then return end
    local packed = {}
    for i = #some, from, -1 do
      packed[#packed + 1] = type(some[i]) == "string" and some[i] or ring_rules.pack(some[i])
    end
    many("LPUSH", S .. "ring:" .. name, packed)
    sooner[name] = true
  end

  local function put(name, ring, member, place)
    local packed = ring_rules.pack(member)
    if place == PLACE_TAIL then
      put_at_tail(name, packed)
    elseif place == PLACE_HEAD then
      call("LPUSH", S .. "ring:" .. name, packed)
      sooner[name] = true
    else
      call("ZADD", S .. "resting:" .. name, string.format("%.2f", member[MEMBER_DUE]), packed)
      if ring[RING_FIRST_REST] == 0 or member[MEMBER_DUE] < ring[RING_FIRST_REST] then
        ring[RING_FIRST_REST], sooner[name] = member[MEMBER_DUE], true
        change(name)
      end
    end
  end

  -- May a member go out there sooner than was known before this call?
  function members.is_sooner(name)
    push_tail(name)
    return sooner[name]
  end

  -- The lanes to which members came back, and which may be served sooner: they have to be queued again.
  function members.served_sooner()
    local found = {}
    push_tails()
    for name in pairs(sooner) do
      if returned[name] then found[#found + 1] = name end
    end
    return found
  end

  local function look_for_first(name, ring)
    local _, first = unpack(call("ZRANGE", S .. "resting:" .. name, 0, 0, "WITHSCORES"), 1, 2)
    ring[RING_FIRST_REST] = tonumber(first) or 0
    change(name)
  end

  -- Members whose rest is over go to the tail of the ring.
  local function end_rests(name, ring)
    local due = call("ZRANGEBYSCORE", S .. "resting:" .. name, "-inf", now, "LIMIT", 0, COME_BACK)
    if #due > 0 then call("ZREMRANGEBYRANK", S .. "resting:" .. name, 0, #due - 1) end
    for i = 1, #due do
      local member = ring_rules.unpack(due[i])
      member[MEMBER_BANNED_AT] = 0
      put(name, ring, member, PLACE_TAIL)
    end
    look_for_first(name, ring)
  end

  local function deal(name, pool, ring, count)
    local key = S .. "added:" .. pool.name
    local account = pool.accounts and select(2, pool_parts(name))
    change(name)
    if account then
      -- Only this one: in the pool, or to come.
      local number, dealt_before = tonumber(call("ZSCORE", key, account)), ring[RING_DEALT]
      ring[RING_DEALT] = pool.last
      return number and number > dealt_before and {ring_rules.packed_new(account, number)} or {}
    end
    local added = call("ZRANGEBYSCORE", key, "(" .. ring[RING_DEALT], "+inf", "WITHSCORES", "LIMIT", 0, count)
    local dealt = {}
    for i = 1, #added, 2 do
      local number = tonumber(added[i + 1])
      dealt[#dealt + 1], ring[RING_DEALT] = ring_rules.packed_new(added[i], number), number
    end
    if #added == 0 then ring[RING_DEALT] = pool.last end
    return dealt
  end

  -- Packed. One that is held goes on; then those that the lane never had are dealt before others have their second turn.
  local function next_members(name, pool, ring, count)
    local key = S .. "ring:" .. name
    if tails[name] then push_tail(name) end
    if ring[RING_DEALT] < pool.last then
      local head = pool.rules[RULE_HOLD] ~= 1 and call("LINDEX", key, 0)
      if head and ring_rules.unpack(head)[MEMBER_USES] > 0 then
        count = 1
      else
        local dealt = deal(name, pool, ring, count)
        if #dealt > 0 then return dealt end
      end
    end
    if count == 1 then return {call("LPOP", key) or nil} end
    return call("LPOP", key, count) or {}
  end

  local function read_load(load)
    return unpack_(LOAD_FORM, load and filled(load, LOAD_BYTES) or NO_LOAD)
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
  local function held_up(name, pool, member, faults, load, lock, latest)
    local busy
    if faults then
      local _, down_until = unpack_(FAULTS_FORM, faults)
      if down_until > now then busy = down_until end
    end
    local loaded = pool.limited and loaded_until(name, pool, member, load, lock, latest)
    return loaded and max(busy or 0, loaded) or busy
  end

  -- It was removed from the pool.
  local function set_aside(name, pool, ring, member)
    local packed = call("HGET", S .. "removed:" .. pool.name, member[MEMBER_ID])
    if not packed or unpack_(KNOWN_FORM, packed) ~= member[MEMBER_ADDED] then return end
    member[MEMBER_USES], member[MEMBER_DUE] = SET_ASIDE, max(member[MEMBER_DUE], ring_rules.ceil_unit(now + DAY))
    put(name, ring, member, PLACE_RESTING)
  end

  -- The pool has changed: members that are in it again come back.
  local function follow_changes(name, pool, ring)
    ring[RING_CHANGES] = pool.changes
    change(name)
    local key, back = S .. "resting:" .. name, 0
    for _, packed in ipairs(call("ZREVRANGE", key, 0, LIFTED - 1)) do
      local member = ring_rules.unpack(packed)
      local known = member[MEMBER_USES] == SET_ASIDE and call("HGET", S .. "pools:" .. pool.name, member[MEMBER_ID])
      if known and unpack_(KNOWN_FORM, known) == member[MEMBER_ADDED] then
        call("ZREM", key, packed)
        member[MEMBER_USES] = 0
        -- The interval that it had left is forgotten with its due time.
        member[MEMBER_DUE] = ring_rules.ceil_unit(now + ring_rules.wanted_interval(pool.rules, ring))
        put(name, ring, member, PLACE_TAIL)
        back = back + 1
      end
    end
    if back > 0 then look_for_first(name, ring) end
  end

  -- What the pool knows of these members: their numbers and weights, faults, loads and locks; nil where that need not be known.
  local function look_up(pool, some)
    if pool.alike and not pool.faulty and not pool.limited then return nil, nil, nil, nil end
    local ids = {}
    for i = 1, #some do ids[i] = sub(some[i], 1, MEMBER_ID_BYTES) end
    local function asked(is_needed, key)
      return is_needed and call("HMGET", S .. key .. pool.name, unpack(ids, 1, #ids)) or nil
    end
    return asked(not pool.alike, "pools:"), asked(pool.faulty, "faults:"), asked(pool.limited, "load:"),
      asked(pool.accounts, "locks:")
  end

  -- Take members of the ring, or put them where they belong. True if one is due too late, and so those behind it.
  local function choose(name, pool, ring, some, latest, taken, passed)
    local known, faults, loads, locks = look_up(pool, some)
    local plain = not loads and ring_rules.plain
    for i = 1, #some do
      local packed = some[i]
      local due, state = unpack_(MEMBER_STATE_FORM, packed, MEMBER_STATE)
      if plain and plain[state] and due / UNITS <= latest and not (faults and faults[i])
        and (not known or known[i] == sub(packed, MEMBER_ID_BYTES + 1, MEMBER_STATE - 1) .. FULL_WEIGHT) then
        -- Nearly all of them: nothing else has to be known.
        taken[#taken + 1] = packed
      else
        local member, weight, busy = ring_rules.unpack(packed), MOST_WEIGHT, nil
        local number = member[MEMBER_ADDED]
        if known then number, weight = unpack_(KNOWN_FORM, known[i] or NO_MEMBER) end
        if faults or loads then
          busy = held_up(name, pool, member, faults and faults[i], loads and loads[i], locks and locks[i], latest)
        end
        if number ~= member[MEMBER_ADDED] then
          set_aside(name, pool, ring, member)
        elseif busy then
          member[MEMBER_DUE] = max(member[MEMBER_DUE], ring_rules.ceil_unit(busy))
          put(name, ring, member, PLACE_RESTING)
        elseif member[MEMBER_DUE] > latest then
          put_at_head(name, some, i)
          return true
        elseif not ring_rules.has_all_turns(member, weight) and ring_rules.loses_turn(member, weight, chance()) then
          passed[#passed + 1] = member
        else
          taken[#taken + 1] = member
        end
      end
    end
    return false
  end

  -- Up to so many members that may start until the latest moment. They are out of the ring: `go_out` or `put_back`.
  function members.take(name, wanted, latest, own_gap)
    local pool, ring = pool_named(pool_of(name)), members.ring_of(name)
    if not pool then return {} end
    if (own_gap > 0 or ring[RING_GAP] > 0) and ring_rules.want_gap(ring, own_gap) then change(name) end
    if ring[RING_CHANGES] ~= pool.changes then follow_changes(name, pool, ring) end
    if ring[RING_FIRST_REST] > 0 and ring[RING_FIRST_REST] <= now then end_rests(name, ring) end
    local taken, passed, looks, late = {}, {}, 0, false
    while #taken < wanted and looks < wanted + LOOKS and not late do
      local some = next_members(name, pool, ring, wanted - #taken)
      if #some == 0 then break end
      looks = looks + #some
      late = choose(name, pool, ring, some, latest, taken, passed)
    end
    for i = 1, #passed do
      -- A turn is lost to others only.
      if #taken < wanted then
        taken[#taken + 1] = passed[i]
      else
        put(name, ring, passed[i], ring_rules.pass_over(passed[i], ring_rules.wanted_interval(pool.rules, ring)))
      end
    end
    return taken
  end

  -- Members that were taken and are not needed, as they were.
  function members.put_back(name, taken, from)
    put_at_head(name, taken, from)
  end

  -- The interval of the lane through one member.
  function members.interval_of(name)
    return ring_rules.wanted_interval(pool_named(pool_of(name)).rules, members.ring_of(name))
  end

  local function count_start(pool, member, start)
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

  -- The member goes out with this lease, at this moment or as soon as it is due: the start, and the member as it is kept
  -- until it is back.
  function members.go_out(name, member, start, wanted, token)
    if type(member) == "string" then
      local front, due, state = unpack_(MEMBER_PARTS_FORM, member)
      if due / UNITS > start then start = due / UNITS end
      return start, pack_(MEMBER_PARTS_FORM, front, ceil((start + wanted) * UNITS), state)
    end
    start = max(start, member[MEMBER_DUE], member.next_start or 0)
    member[MEMBER_DUE] = ring_rules.ceil_unit(start + ring_rules.interval(member, wanted))
    if member.visits then
      local pool = pool_named(pool_of(name))
      count_start(pool, member, start)
      if pool.accounts then account_locks().lock(pool.name, name, member[MEMBER_ID], token) end
    end
    return start, ring_rules.pack(member)
  end

  local function clear_faults(pool)
    many("HDEL", S .. "faults:" .. pool.name, pool.cleared)
    pool.cleared = {}
  end

  -- Those that work again are cleared together: at the end of the call, or before the next fault is counted.
  local function count_fault(pool, id, result)
    local key = S .. "faults:" .. pool.name
    if result == RESULT_FAULT then
      clear_faults(pool)
      local faults = unpack_(FAULTS_FORM, call("HGET", key, id) or NO_FAULTS)
      faults = min(MOST_FAULTS, faults + 1)
      call("HSET", key, id, pack_(FAULTS_FORM, faults, now + ring_rules.down_for(faults, chance())))
      pool.faulty = true
    elseif result ~= RESULT_UNUSED and result ~= RESULT_UNCLEAR then
      pool.cleared[#pool.cleared + 1] = id
    end
  end

  local function unload(pool, member)
    local key = S .. "load:" .. pool.name
    local next_start, visits, starts, since = read_load(call("HGET", key, member[MEMBER_ID]))
    call("HSET", key, member[MEMBER_ID], pack_(LOAD_FORM, next_start, max(0, visits - 1), starts, since))
  end

  -- Its worker was silent for too long, and may still send: it rests for all lanes.
  function members.rest_of_dead(name, packed)
    local pool, id = pool_named(pool_of(name)), ring_rules.unpack(packed)[MEMBER_ID]
    local rest = pool and pool.rules[RULE_REST_OF_DEAD] or 0
    if rest == 0 then return end
    local key = S .. "load:" .. pool.name
    local next_start, visits, starts, since = read_load(call("HGET", key, id))
    call("HSET", key, id, pack_(LOAD_FORM, max(next_start, now + rest), visits, starts, since))
  end

  -- End the quarantines that are meant. How many.
  local function lift_where(name, ring, blocked_at, is_meant)
    local key, count = S .. "resting:" .. name, 0
    local resting = call("ZRANGE", key, 0, LIFTED - 1)
    for i = 1, #resting do
      local member = ring_rules.unpack(resting[i])
      if member[MEMBER_BANNED_AT] > 0 and is_meant(member) then
        ring_rules.lift(member, ring_rules.wanted_interval(pool_named(pool_of(name)).rules, ring), blocked_at)
        call("ZREM", key, resting[i])
        put(name, ring, member, PLACE_TAIL)
        count = count + 1
      end
    end
    if count > 0 then look_for_first(name, ring) end
    return count
  end

  -- The first member that was banned in the block by the site goes out: are these bans over?
  local function test_a_ban(name, ring, since, blocked_at)
    local first
    for _, packed in ipairs(call("ZRANGE", S .. "resting:" .. name, 0, LIFTED - 1)) do
      local member = ring_rules.unpack(packed)
      local at = member[MEMBER_BANNED_AT]
      if at > 0 and at >= since and (not first or at < first[MEMBER_BANNED_AT]) then first = member end
    end
    if not first then return end
    lift_where(name, ring, blocked_at, function(each) return each[MEMBER_ID] == first[MEMBER_ID] end)
    ring[RING_TESTED] = first[MEMBER_ID]
    change(name)
  end

  -- The account is free: the first lane that waits for it need not wait for its next look. Where visits through one
  -- account have an interval, it is not known how much of that is left.
  local function hand_over(pool, id)
    local name, prefix = account_locks().next_in_turn(pool.name, id)
    if not name or call("EXISTS", prefix .. "job") == 0 then return end
    local key, ring = S .. "resting:" .. name, members.ring_of(name)
    local wanted = ring_rules.wanted_interval(pool.rules, ring)
    for _, packed in ipairs(call("ZRANGEBYSCORE", key, now, "+inf", "LIMIT", 0, COME_BACK)) do
      local member = ring_rules.unpack(packed)
      if member[MEMBER_ID] == id and member[MEMBER_BANNED_AT] == 0 and member[MEMBER_USES] ~= SET_ASIDE
        and ring_rules.interval(member, wanted) == 0 then
        call("ZREM", key, packed)
        member[MEMBER_DUE] = ring_rules.ceil_unit(now)
        put(name, ring, member, PLACE_HEAD)
        look_for_first(name, ring)
        wake_lane(prefix, name)
        return
      end
    end
  end

  -- All members are out, or there are none: the job is woken when one comes.
  function members.want(name)
    local key = S .. "wanting:" .. pool_of(name)
    local prefixes = call("HGET", key, name) or ""
    if not string.find(prefixes, P .. " ", 1, true) then call("HSET", key, name, prefixes .. P .. " ") end
  end

  -- Other jobs that wait for a member there are woken. This one has looked already, and may wait again.
  local function wake_others(name)
    local key = S .. "wanting:" .. pool_of(name)
    local prefixes = call("HGET", key, name)
    if not prefixes or prefixes == P .. " " then return end
    call("HDEL", key, name)
    for prefix in string.gmatch(prefixes, "%S+") do
      if prefix == P then call("HSET", key, name, P .. " ") else wake_lane(prefix, name) end
    end
  end

  function members.write()
    push_tails()
    for name in pairs(sooner) do
      if returned[name] then wake_others(name) end
    end
    local packed = {}
    for name in pairs(changed) do
      packed[#packed + 1] = name
      packed[#packed + 1] = pack_(RING_FORM, unpack(rings[name], RING_DEALT, RING_TESTED))
    end
    many("HSET", S .. "rings", packed)
    for _, pool in pairs(pools) do
      if pool then clear_faults(pool) end
    end
    changed, returned = {}, {}
  end

  -- After a good visit most members go to the tail, and only their state may change. False if this one needs more.
  local function is_plainly_back(name, pool, ring, packed)
    if pool.limited or pool.rules[RULE_HOLD] ~= 1 or ring[RING_BLOCKED_AT] > 0
      or ring[RING_TESTED] ~= ring_rules.not_tested then
      return false
    end
    local due, state = unpack_(MEMBER_STATE_FORM, packed, MEMBER_STATE)
    local better = ring_rules.better[state]
    if not better or due / UNITS > now + PARKED then return false end
    if pool.faulty then count_fault(pool, sub(packed, 1, MEMBER_ID_BYTES), RESULT_GOOD) end
    if ring_rules.weigh(ring, false) then change(name) end
    put_at_tail(name, better == state and packed or sub(packed, 1, MEMBER_FRONT) .. better)
    returned[name] = true
    return true
  end

  -- The visit is over: the member goes back to where it belongs. lifts: members (6 bytes each) whose ban was the page's
  -- fault.
  function members.come_back(name, packed, result, retry_after, luck, lifts)
    local pool, ring = pool_named(pool_of(name)), members.ring_of(name)
    if not pool or (result == RESULT_GOOD and not lifts and is_plainly_back(name, pool, ring, packed)) then return end
    local member = ring_rules.unpack(packed)
    if pool.faulty or result == RESULT_FAULT then count_fault(pool, member[MEMBER_ID], result) end
    if pool.limited and not pool.accounts then unload(pool, member) end
    local suspected_at, blocked_at, fine = ring[RING_SUSPECTED_AT], ring[RING_BLOCKED_AT], ring_rules.may_lift(ring)
    local evidence, share, tested = ring[RING_EVIDENCE], ring[RING_SHARE], ring[RING_TESTED]
    local place, lifts_bans = ring_rules.returned(member, ring, result, pool.rules, retry_after, luck)
    if ring[RING_EVIDENCE] ~= evidence or ring[RING_SHARE] ~= share or ring[RING_SUSPECTED_AT] ~= suspected_at
      or ring[RING_BLOCKED_AT] ~= blocked_at or ring[RING_TESTED] ~= tested then
      change(name)
    end
    put(name, ring, member, place)
    returned[name] = true
    if pool.accounts then hand_over(pool, member[MEMBER_ID]) end
    if lifts_bans == LIFT_ONE then
      test_a_ban(name, ring, suspected_at, blocked_at)
    elseif lifts_bans == LIFT_ALL then
      local since = ring[RING_TESTED_SINCE]
      lift_where(name, ring, ring[RING_TESTED_BLOCKED_AT], function(each) return each[MEMBER_BANNED_AT] >= since end)
    end
    if fine and lifts and #lifts > 0 then
      local meant = {}
      for i = 1, #lifts do meant[lifts[i]] = true end
      lift_where(name, ring, 0, function(each) return meant[each[MEMBER_ID]] end)
    end
  end

  -- From when on a member may go out; nil while all are out.
  function members.free_at(name)
    local pool, ring = pool_named(pool_of(name)), members.ring_of(name)
    if not pool then return nil end
    if ring[RING_DEALT] < pool.last or ring[RING_CHANGES] ~= pool.changes then return 0 end
    push_tail(name)
    local head, free = call("LINDEX", S .. "ring:" .. name, 0), nil
    if head then free = ring_rules.unpack(head)[MEMBER_DUE] - HORIZON end
    if ring[RING_FIRST_REST] > 0 then free = min(free or ring[RING_FIRST_REST], ring[RING_FIRST_REST]) end
    return free
  end

  return members
end

local begun = false

-- The functions, which are made when they are needed: most calls have nothing to do with proxy pools.
function members()
  if not begun then
    made, begun = made or make(), true
    made.begin()
  end
  return made
end

function write_rings()
  if begun then made.write() end
end
