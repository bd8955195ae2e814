-- The members of proxy pools: who goes out next in a lane, and where they wait. rules/proxy_ring.py has the rules.
--
--   S pool:POOL     hash  version, rules (PoolRules, packed), last (the number of the member added last), changes (how
--                         often it was registered), alike (1 while no member was ever removed and all have full weight:
--                         then members need not be looked up in the pool)
--   S pools:POOL    hash  member (6 bytes) -> its number and weight     S added:POOL   zset  the same, and
--                         those that were removed -> number
--   S dealing:POOL  hash  number of a block (4 bytes) -> the members with the numbers of that block, one after the other
--   S registered    hash  pool -> version
--   S ring:LANE     list  members that may go out, the next one first (packed, see MEMBER in layouts.py); those that came
--                         back together are one string
--   S resting:LANE  zset  members in quarantine, or due much later -> due and more (RESTING_FORM in layouts.py)
--   S rings         hash  lane -> what is known of its ring (RING in layouts.py)
--   S evidence      hash  lane -> what is known of blocks by the site, where there is anything (RING, from EVIDENCE on)
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
-- Members that go to the tail of a ring are pushed together, as one string: at the end of the call, or before the ring is
-- read. So a batch of visits through the members of a lane costs one pop and one push. A member that goes out stays packed,
-- unless the rules or the pool have something to say of it. A good visit does not read the ring, and needs no more of the
-- lane than whether there is evidence against its site.
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
-- Members of one string of a ring.
local MOST_TOGETHER = 16
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
  local not_tested, better, plain = ring_rules.not_tested, ring_rules.better, ring_rules.plain
  local new_rest, new_state = ring_rules.new_rest, sub(ring_rules.new_rest, MEMBER_FRONT - MEMBER_NAME + 1)
  -- Counts as text: numbers are turned into text by each call.
  local COUNTS = {}
  for count = 1, MOST_TOGETHER do COUNTS[count] = tostring(count) end
  -- Lane -> its ring, and packed: as it was read, or as it is after a lease that needed no more of it.
  local pools, rings, packed_rings, changed, judged
  -- Lane -> its packed evidence, false if there is none; nil: it was not read. Is there any of any lane?
  local evidence, has_evidence
  -- Lane -> packed members for the tail of its ring, the only one or a list. Lanes to which members came back (all of them do:
  -- visits have ended), and those in which one may go out sooner than was known.
  local tails, returned, all_return, sooner
  local luck_left

  -- A call begins: what the one before it knew is forgotten.
  function members.begin()
    pools, rings, packed_rings, changed, judged, tails, returned, sooner = {}, {}, {}, {}, {}, {}, {}, {}
    evidence, has_evidence, all_return = {}, nil, false
    luck_left = tonumber(ARGV[CHANCE]) or 0
  end

  local function chance()
    luck_left = (luck_left * MULTIPLIER + INCREMENT) % 1
    return luck_left
  end

  function members.pool_named(name)
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
        pool.alike, pool.cleared, pool.blocks = alike == "1", {}, {}
        -- Its members need not be looked up in it. And none of them is held.
        pool.plain = pool.alike and not pool.faulty and not pool.limited
        pool.rotates = pool.rules[RULE_HOLD] == 1
        -- The ring of most lanes that have had all of them.
        pool.calm_ring = pack_(RING_FORM, pool.last, pool.changes, 0, 0, 0)
      end
      pools[name] = pool
    end
    return pool
  end

  local pool_named = members.pool_named

  -- The evidence of these lanes, read together.
  function members.read_evidence(names)
    if has_evidence == nil then has_evidence = call("EXISTS", S .. "evidence") == 1 end
    for from = 1, has_evidence and #names or 0, 1000 do
      local found = call("HMGET", S .. "evidence", unpack(names, from, min(#names, from + 999)))
      for i = 1, #found do
        evidence[names[from + i - 1]] = found[i] and #found[i] == EVIDENCE_BYTES and found[i]
      end
    end
  end

  local function read_ring(name, packed)
    local known = evidence[name]
    if known == nil and has_evidence ~= false then
      members.read_evidence({name})
      known = evidence[name]
    end
    local dealt, changes, first_rest, gap, gap_at = 0, 0, 0, 0, 0
    if packed and #packed == RING_BYTES then dealt, changes, first_rest, gap, gap_at = unpack_(RING_FORM, packed) end
    if not known then return {dealt, changes, first_rest, gap, gap_at, 0, 0, 0, 0, 0, 0, not_tested} end
    return {dealt, changes, first_rest, gap, gap_at, unpack_(EVIDENCE_FORM, known)}
  end

  -- The rings of up to 1,000 lanes as they were when the call began, packed, in the same order; `take` wants them.
  function members.read_rings(names)
    members.read_evidence(names)
    return call("HMGET", S .. "rings", unpack(names, 1, #names))
  end

  function members.ring_of(name)
    local ring = rings[name]
    if not ring then
      local packed = packed_rings[name]
      if packed == nil then packed = call("HGET", S .. "rings", name) end
      ring = read_ring(name, packed)
      rings[name] = ring
    end
    return ring
  end

  -- Does the site block all of them?
  function members.site_blocked(name)
    return (rings[name] ~= nil or evidence[name] ~= false and has_evidence ~= false)
      and members.ring_of(name)[RING_BLOCKED_AT] > 0
  end

  local function change(name) changed[name] = true end

  -- The evidence against its site has changed.
  local function judge(name) judged[name] = true end

  local function has_no_evidence(ring)
    return ring[RING_EVIDENCE] == 0 and ring[RING_SHARE] == 0 and ring[RING_SUSPECTED_AT] == 0
      and ring[RING_BLOCKED_AT] == 0 and ring[RING_TESTED] == not_tested
  end

  -- Can the lane be dealt members that it never had? Then it does not wait for one that is out.
  local function has_more(name)
    local pool, ring = pool_named(pool_of(name)), members.ring_of(name)
    return pool and ring[RING_DEALT] < pool.last and ring[RING_CHANGES] == pool.changes
  end

  local function push_tail(name)
    local tail = tails[name]
    if not tail then return end
    tails[name] = nil
    local length = call("RPUSH", S .. "ring:" .. name, type(tail) == "table" and table.concat(tail) or tail)
    if length == 1 and not has_more(name) then sooner[name] = true end
  end

  local function push_tails()
    for name in pairs(tails) do push_tail(name) end
  end

  local function put_at_tail(name, packed)
    local tail = tails[name]
    if not tail then
      tails[name] = packed
    elseif type(tail) ~= "table" then
      tails[name] = {tail, packed, nil, nil, nil, nil, nil, nil}
    else
      tail[#tail + 1] = packed
      if #tail == MOST_TOGETHER then push_tail(name) end
    end
  end

  -- Packed members, as they were.
  local function put_at_head(name, packed)
    local strings = {}
    for from = #packed - (#packed - 1) % (MOST_TOGETHER * MEMBER_BYTES), 1, -MOST_TOGETHER * MEMBER_BYTES do
      strings[#strings + 1] = sub(packed, from, from + MOST_TOGETHER * MEMBER_BYTES - 1)
    end
    many("LPUSH", S .. "ring:" .. name, strings)
  end

  local function put(name, ring, member, place)
    if place == PLACE_TAIL then
      put_at_tail(name, ring_rules.pack(member))
    elseif place == PLACE_HEAD then
      call("LPUSH", S .. "ring:" .. name, ring_rules.pack(member))
      sooner[name] = true
    else
      call("ZADD", S .. "resting:" .. name, ring_rules.pack_resting(member))
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
      if all_return or returned[name] then found[#found + 1] = name end
    end
    return found
  end

  local function look_for_first(name, ring)
    local _, first = unpack(call("ZRANGE", S .. "resting:" .. name, 0, 0, "WITHSCORES"), 1, 2)
    ring[RING_FIRST_REST] = first and ring_rules.due_of(tonumber(first)) or 0
    change(name)
  end

  -- Members whose rest is over go to the tail of the ring.
  local function end_rests(name, pool, ring)
    local key = S .. "resting:" .. name
    local due = call("ZRANGEBYSCORE", key, "-inf", ring_rules.due_now(), "WITHSCORES", "LIMIT", 0, COME_BACK)
    if #due > 0 then call("ZREMRANGEBYRANK", key, 0, #due / 2 - 1) end
    for i = 1, #due, 2 do
      local member = ring_rules.unpack_resting(due[i], tonumber(due[i + 1]), pool.last)
      member[MEMBER_BANNED_AT] = 0
      put(name, ring, member, PLACE_TAIL)
    end
    look_for_first(name, ring)
  end

  -- The members of a pool with the numbers of a block; false: none is left of them.
  local function block_of(pool, block)
    local ids = pool.blocks[block]
    if ids == nil then
      ids = call("HGET", S .. "dealing:" .. pool.name, pack_("<I4", block))
      pool.blocks[block] = ids
    end
    return ids
  end

  -- Up to so many members that the lane never had (id and number), and the number of the last of them.
  local function deal(name, pool, dealt, count)
    local key = S .. "added:" .. pool.name
    local account = pool.accounts and select(2, pool_parts(name))
    if account then
      -- Only this one: in the pool, or to come.
      local number = tonumber(call("ZSCORE", key, account))
      return {number and number > dealt and account .. pack_("<I4", number) or nil}, pool.last
    end
    local place = dealt % DEALT_TOGETHER
    local ids = block_of(pool, (dealt - place) / DEALT_TOGETHER)
    if not ids then
      local _, number = unpack(call("ZRANGEBYSCORE", key, "(" .. dealt, "+inf", "WITHSCORES", "LIMIT", 0, 1), 1, 2)
      dealt = number and tonumber(number) - 1 or pool.last
      place = dealt % DEALT_TOGETHER
      ids = number and block_of(pool, (dealt - place) / DEALT_TOGETHER) or ""
    end
    count = max(0, min(count, #ids / MEMBER_ID_BYTES - place))
    local fronts = count == 1 and {nil} or {nil, nil, nil, nil, nil, nil, nil, nil}
    for i = 1, count do
      local at = (place + i - 1) * MEMBER_ID_BYTES + 1
      fronts[i] = sub(ids, at, at + MEMBER_ID_BYTES - 1) .. pack_("<I4", dealt + i)
    end
    return fronts, count > 0 and dealt + count or pool.last
  end

  -- Only strings of whole members: another one was written by another program.
  local function whole_ones(strings)
    local whole = {}
    for i = 1, #strings do
      if #strings[i] % MEMBER_BYTES == 0 then whole[#whole + 1] = strings[i] end
    end
    return table.concat(whole)
  end

  -- From the head of a ring, at least so many if there are as many; "": it is empty.
  local function pop_members(key, count)
    local packed = call("LPOP", key) or ""
    if #packed == count * MEMBER_BYTES then return packed end
    local size = #packed / MEMBER_BYTES
    if #packed % MEMBER_BYTES > 0 then size = 0 end
    if packed == "" or size >= count then return packed end
    -- The next ones are likely to be as large.
    local strings = call("LPOP", key, COUNTS[ceil((count - size) / max(1, size))] or count - size) or {}
    return whole_ones({packed, unpack(strings, 1, #strings)})
  end

  -- Up to so many, or some more, packed, and how many of them may be taken. One that is held goes on; then those that the
  -- lane never had are dealt before others have their second turn.
  local function next_members(name, pool, ring, count)
    local key = S .. "ring:" .. name
    if tails[name] then push_tail(name) end
    if ring[RING_DEALT] < pool.last then
      local head = pool.rules[RULE_HOLD] ~= 1 and call("LINDEX", key, "0")
      if head and #head >= MEMBER_BYTES and ring_rules.unpack(head)[MEMBER_USES] > 0 then
        count = 1
      else
        local fronts
        fronts, ring[RING_DEALT] = deal(name, pool, ring[RING_DEALT], count)
        change(name)
        if #fronts > 0 then return table.concat(fronts, new_rest) .. new_rest, count end
      end
    end
    return pop_members(key, count), count
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
    local resting = call("ZREVRANGE", key, 0, LIFTED - 1, "WITHSCORES")
    for i = 1, #resting, 2 do
      local member = ring_rules.unpack_resting(resting[i], tonumber(resting[i + 1]), pool.last)
      local known = member[MEMBER_USES] == SET_ASIDE and call("HGET", S .. "pools:" .. pool.name, member[MEMBER_ID])
      if known and unpack_(KNOWN_FORM, known) == member[MEMBER_ADDED] then
        call("ZREM", key, resting[i])
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
  local function look_up(pool, packed)
    local ids = {}
    for at = 1, #packed, MEMBER_BYTES do ids[#ids + 1] = sub(packed, at, at + MEMBER_ID_BYTES - 1) end
    local function asked(is_needed, key)
      return is_needed and call("HMGET", S .. key .. pool.name, unpack(ids, 1, #ids)) or nil
    end
    return asked(not pool.alike, "pools:"), asked(pool.faulty, "faults:"), asked(pool.limited, "load:"),
      asked(pool.accounts, "locks:")
  end

  -- Take so many members of the ring, or put them where they belong; `taken` gets three values for each: its id and number,
  -- due time and state, or the member itself, false and false. How many were looked at, whether one is due too late, and so
  -- those behind it, and those that lost their turn, if any.
  local function choose(name, pool, packed, most, latest, taken, passed)
    local known, faults, loads, locks
    if not pool.plain then known, faults, loads, locks = look_up(pool, packed) end
    local at, filled_at, i, upto = 1, #taken, 0, TAKEN_SIZE * most
    while at <= #packed do
      if filled_at >= upto then
        put_at_head(name, sub(packed, at))
        return i, false, passed
      end
      local front, due, state = unpack_(MEMBER_PARTS_FORM, packed, at)
      i = i + 1
      if plain[state] and due / UNITS <= latest and (not known or known[i] == sub(front, MEMBER_ID_BYTES + 1) .. FULL_WEIGHT)
        and not loads and not (faults and faults[i]) then
        -- Nearly all of them: nothing else has to be known.
        taken[filled_at + 1], taken[filled_at + 2], taken[filled_at + TAKEN_SIZE] = front, due, state
        filled_at = filled_at + TAKEN_SIZE
      else
        local member, weight, busy = ring_rules.unpack(packed, at), MOST_WEIGHT, nil
        local number = member[MEMBER_ADDED]
        if known then number, weight = unpack_(KNOWN_FORM, known[i] or NO_MEMBER) end
        if faults or loads then
          busy = held_up(name, pool, member, faults and faults[i], loads and loads[i], locks and locks[i], latest)
        end
        if number ~= member[MEMBER_ADDED] then
          set_aside(name, pool, members.ring_of(name), member)
        elseif busy then
          member[MEMBER_DUE] = max(member[MEMBER_DUE], ring_rules.ceil_unit(busy))
          put(name, members.ring_of(name), member, PLACE_RESTING)
        elseif member[MEMBER_DUE] > latest then
          put_at_head(name, sub(packed, at))
          return i, true, passed
        elseif not ring_rules.has_all_turns(member, weight) and ring_rules.loses_turn(member, weight, chance()) then
          passed = passed or {}
          passed[#passed + 1] = member
        else
          taken[filled_at + 1], taken[filled_at + 2], taken[filled_at + TAKEN_SIZE] = member, false, false
          filled_at = filled_at + TAKEN_SIZE
        end
      end
      at = at + MEMBER_BYTES
    end
    return i, false, passed
  end

  -- For a lane of which no more of the ring has to be known: nothing has changed or come back, and nothing is known of its
  -- site. How many were looked at, and what `choose` says more; 0 if it is not such a lane.
  local function take_plainly(name, pool, ring, wanted, latest, own_gap, taken)
    if not pool.plain or not pool.rotates or rings[name] or evidence[name] or tails[name] then return 0, false, nil end
    if ring ~= pool.calm_ring or own_gap > 0 then
      local dealt, changes, first_rest, gap, gap_at = 0, pool.changes, 0, 0, 0
      if ring and #ring ~= RING_BYTES then return 0, false, nil end
      if ring then dealt, changes, first_rest, gap, gap_at = unpack_(RING_FORM, ring) end
      if changes ~= pool.changes or (first_rest > 0 and first_rest <= now) or gap ~= own_gap
        or (gap > 0 and now >= gap_at + 1) then
        return 0, false, nil
      end
      if dealt < pool.last then
        local fronts
        fronts, dealt = deal(name, pool, dealt, wanted)
        for i = 1, #fronts do
          local at = TAKEN_SIZE * (i - 1) + 1
          taken[at], taken[at + TAKEN_DUE], taken[at + TAKEN_STATE] = fronts[i], 0, new_state
        end
        packed_rings[name] = pack_(RING_FORM, dealt, changes, first_rest, gap, gap_at)
        change(name)
        return #fronts, false, nil
      end
    end
    local packed = pop_members(S .. "ring:" .. name, wanted)
    if packed == "" then return 0, false, nil end
    return choose(name, pool, packed, wanted, latest, taken)
  end

  -- Up to so many members that may start until the latest moment, as `choose` gives them. They are out of the ring: `go_out`
  -- or `put_back`. And the interval of the lane through one member. packed: its ring, from `read_rings`.
  function members.take(name, wanted, latest, own_gap, packed)
    local pool = pool_named(pool_of(name))
    if not pool then return {}, 0 end
    if changed[name] then packed = packed_rings[name] end
    -- Room for those of a usual turn.
    local taken = wanted == 1 and {nil, nil, nil} or {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
      nil, nil, nil, nil, nil, nil, nil, nil, nil}
    local looks, late, passed = take_plainly(name, pool, packed, wanted, latest, own_gap, taken)
    if #taken == TAKEN_SIZE * wanted and not passed then return taken, max(pool.rules[RULE_INTERVAL], own_gap) end
    if not changed[name] then packed_rings[name] = packed end
    local ring = members.ring_of(name)
    if (own_gap > 0 or ring[RING_GAP] > 0) and ring_rules.want_gap(ring, own_gap) then change(name) end
    if ring[RING_CHANGES] ~= pool.changes then follow_changes(name, pool, ring) end
    if ring[RING_FIRST_REST] > 0 and ring[RING_FIRST_REST] <= now then end_rests(name, pool, ring) end
    while #taken < TAKEN_SIZE * wanted and looks < wanted + LOOKS and not late do
      local had = #taken / TAKEN_SIZE
      local some, most = next_members(name, pool, ring, wanted - had)
      if some == "" then break end
      local looked
      looked, late, passed = choose(name, pool, some, had + most, latest, taken, passed)
      looks = looks + looked
    end
    local interval = ring_rules.wanted_interval(pool.rules, ring)
    for i = 1, passed and #passed or 0 do
      -- A turn is lost to others only.
      local at = #taken
      if at < TAKEN_SIZE * wanted then
        taken[at + 1], taken[at + 2], taken[at + TAKEN_SIZE] = passed[i], false, false
      else
        put(name, ring, passed[i], ring_rules.pass_over(passed[i], interval))
      end
    end
    return taken, interval
  end

  -- Members that were taken and are not needed, as they were.
  function members.put_back(name, taken, from)
    local packed = {}
    for at = TAKEN_SIZE * (from - 1) + 1, #taken, TAKEN_SIZE do
      local front, due, state = unpack(taken, at, at + 2)
      packed[#packed + 1] = due and pack_(MEMBER_PARTS_FORM, front, due, state) or ring_rules.pack(front)
    end
    if #packed > 0 then put_at_head(name, table.concat(packed)) end
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

  -- The member goes out with this lease, at this moment or as soon as it is due: the start, its id and number, and the
  -- rest of what is kept of it until it is back.
  function members.go_out(name, member, start, wanted, token)
    start = max(start, member[MEMBER_DUE], member.next_start or 0)
    member[MEMBER_DUE] = ring_rules.ceil_unit(start + ring_rules.interval(member, wanted))
    if member.visits then
      local pool = pool_named(pool_of(name))
      count_start(pool, member, start)
      if pool.accounts then account_locks().lock(pool.name, name, member[MEMBER_ID], token) end
    end
    local packed = ring_rules.pack(member)
    return start, sub(packed, 1, MEMBER_NAME), sub(packed, MEMBER_NAME + 1)
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
      pool.faulty, pool.plain = true, false
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
    local key, pool, count = S .. "resting:" .. name, pool_named(pool_of(name)), 0
    local resting = call("ZRANGE", key, 0, LIFTED - 1, "WITHSCORES")
    for i = 1, #resting, 2 do
      local member = ring_rules.unpack_resting(resting[i], tonumber(resting[i + 1]), pool.last)
      if member[MEMBER_BANNED_AT] > 0 and is_meant(member) then
        ring_rules.lift(member, ring_rules.wanted_interval(pool.rules, ring), blocked_at)
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
    local resting = call("ZRANGE", S .. "resting:" .. name, 0, LIFTED - 1, "WITHSCORES")
    for i = 1, #resting, 2 do
      local member = ring_rules.unpack_resting(resting[i], tonumber(resting[i + 1]), 0)
      local at = member[MEMBER_BANNED_AT]
      if at > 0 and at >= since and (not first or at < first[MEMBER_BANNED_AT]) then first = member end
    end
    if not first then return end
    lift_where(name, ring, blocked_at, function(each) return each[MEMBER_ID] == first[MEMBER_ID] end)
    ring[RING_TESTED] = first[MEMBER_ID]
    judge(name)
  end

  -- The account is free: the first lane that waits for it need not wait for its next look. Where visits through one
  -- account have an interval, it is not known how much of that is left.
  local function hand_over(pool, id)
    local name, prefix = account_locks().next_in_turn(pool.name, id)
    if not name or call("EXISTS", prefix .. "job") == 0 then return end
    local key, ring = S .. "resting:" .. name, members.ring_of(name)
    local wanted = ring_rules.wanted_interval(pool.rules, ring)
    local later = call("ZRANGEBYSCORE", key, "(" .. ring_rules.due_now(), "+inf", "WITHSCORES", "LIMIT", 0, COME_BACK)
    for i = 1, #later, 2 do
      local member = ring_rules.unpack_resting(later[i], tonumber(later[i + 1]), pool.last)
      if member[MEMBER_ID] == id and member[MEMBER_BANNED_AT] == 0 and member[MEMBER_USES] ~= SET_ASIDE
        and ring_rules.interval(member, wanted) == 0 then
        call("ZREM", key, later[i])
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
      if all_return or returned[name] then wake_others(name) end
    end
    local packed, known, unknown = {}, {}, {}
    for name in pairs(changed) do
      packed[#packed + 1] = name
      packed[#packed + 1] = rings[name] and pack_(RING_FORM, unpack(rings[name], RING_DEALT, RING_GAP_AT)) or packed_rings[name]
    end
    for name in pairs(judged) do
      if has_no_evidence(rings[name]) then
        unknown[#unknown + 1] = name
      else
        known[#known + 1] = name
        known[#known + 1] = pack_(EVIDENCE_FORM, unpack(rings[name], RING_EVIDENCE, RING_TESTED))
      end
    end
    many("HSET", S .. "rings", packed)
    many("HSET", S .. "evidence", known)
    many("HDEL", S .. "evidence", unknown)
    for _, pool in pairs(pools) do
      if pool then clear_faults(pool) end
    end
    changed, judged, returned, all_return = {}, {}, {}, false
  end

  -- After a good visit most members go to the tail, and only their state may change. False if this one needs more. packed
  -- ends with the member.
  function members.is_plainly_back(name, pool, packed)
    if not pool or pool.limited or not pool.rotates then return false end
    local ring = rings[name] or evidence[name] and members.ring_of(name)
    if ring and (ring[RING_BLOCKED_AT] > 0 or ring[RING_TESTED] ~= not_tested) then return false end
    local due, state = unpack_(MEMBER_STATE_FORM, packed, #packed - MEMBER_BYTES + MEMBER_NAME + 1)
    local after = better[state]
    if not after or due / UNITS > now + PARKED then return false end
    if pool.faulty then count_fault(pool, sub(packed, -MEMBER_BYTES, -MEMBER_BYTES + MEMBER_ID_BYTES - 1), RESULT_GOOD) end
    if ring and ring_rules.weigh(ring, false) then judge(name) end
    put_at_tail(name, sub(packed, -MEMBER_BYTES, -MEMBER_BYTES + MEMBER_FRONT - 1) .. after)
    all_return = true
    return true
  end

  -- The visit is over: the member goes back to where it belongs. lifts: members (6 bytes each) whose ban was the page's
  -- fault.
  function members.come_back(name, packed, result, retry_after, luck, lifts)
    local pool = pool_named(pool_of(name))
    if not pool or (result == RESULT_GOOD and not lifts and members.is_plainly_back(name, pool, packed)) then return end
    local ring, member = members.ring_of(name), ring_rules.unpack(packed)
    if pool.faulty or result == RESULT_FAULT then count_fault(pool, member[MEMBER_ID], result) end
    if pool.limited and not pool.accounts then unload(pool, member) end
    local suspected_at, blocked_at, fine = ring[RING_SUSPECTED_AT], ring[RING_BLOCKED_AT], ring_rules.may_lift(ring)
    local evidence, share, tested = ring[RING_EVIDENCE], ring[RING_SHARE], ring[RING_TESTED]
    local place, lifts_bans = ring_rules.returned(member, ring, result, pool.rules, retry_after, luck)
    if ring[RING_EVIDENCE] ~= evidence or ring[RING_SHARE] ~= share or ring[RING_SUSPECTED_AT] ~= suspected_at
      or ring[RING_BLOCKED_AT] ~= blocked_at or ring[RING_TESTED] ~= tested then
      judge(name)
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
    local head, free = call("LINDEX", S .. "ring:" .. name, "0"), nil
    if head and #head >= MEMBER_BYTES then free = ring_rules.unpack(head)[MEMBER_DUE] - HORIZON end
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
