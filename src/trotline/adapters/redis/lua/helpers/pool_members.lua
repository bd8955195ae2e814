-- The members of proxy pools: who goes out next in a lane, and where they wait. rules/proxy_ring.py has the rules.
--
--   S pool:POOL     hash  version, rules (PoolRules, packed), last (the number of the member added last)
--   S pools:POOL    hash  member (6 bytes) -> its number and weight     S added:POOL   zset  member -> its number
--   S ring:LANE     list  members that may go out, the next one first (packed, see Member in layouts.py)
--   S resting:LANE  zset  members in quarantine, or due much later -> due
--   S rings         hash  lane -> what is known of its ring (Ring in layouts.py)
--   S faults:POOL   hash  member -> its own failures in a row, and until when it rests for all lanes
--   S load:POOL     hash  member -> its next start and its visits, in pools with limits per member
--   P out:W         hash  token -> the member that the lease goes out through
--
-- A member is in one place: ring, resting, or out. One whose number is not that of the pool was removed, and perhaps added
-- again since: it is dropped where it is met, and the new one is dealt.
--
-- uses clock: call now
-- uses job: max min pack_ unpack_ P S
-- uses proxy_ring: pack_member unpack_member new_member new_ring ceil_unit member_interval loses_turn returned lifted
-- uses proxy_ring: wanted_gap down_for
-- exports: OUT pool_of ring_of take_members put_back go_out come_back_from members_free_at lift
-- exports: write_rings set_chance

-- Of one call and lane: members looked at beyond those wanted, members whose rest has ended, quarantines lifted.
local LOOKS, COME_BACK, LIFTED = 32, 200, 500
local FULL_FOR = 0.2
OUT = P .. "out:"
local NO_MEMBER, NO_FAULTS, NO_LOAD = pack_(KNOWN_FORM, 0, 0), pack_(FAULTS_FORM, 0, 0), pack_(LOAD_FORM, 0, 0)

local pools, rings, of_lane, changed = {}, {}, {}, {}
local seed = 0

-- Scripts have no randomness of their own: a number in [0, 1) comes with the call.
function set_chance(number) seed = number end

local function chance()
  seed = (seed * 16807 + 0.123456789) % 1
  return seed
end

-- The pool in the name of a lane, or false.
function pool_of(name)
  local pool = of_lane[name]
  if pool == nil then
    pool = string.find(name, VIA, 1, true) and string.match(name, ".*" .. VIA .. "(.+)$") or false
    of_lane[name] = pool
  end
  return pool
end

local function pool_named(name)
  local pool = pools[name]
  if pool == nil then
    local packed, last = unpack(call("HMGET", S .. "pool:" .. name, "rules", "last"), 1, 2)
    pool = packed and {name = name, last = tonumber(last), rules = {unpack_(RULES_FORM, packed)}} or false
    if pool then
      pool.faulty = call("EXISTS", S .. "faults:" .. name) == 1
      pool.limited = pool.rules[RULE_MEMBER_INTERVAL] > 0 or pool.rules[RULE_MEMBER_CONCURRENCY] > 0
    end
    pools[name] = pool
  end
  return pool
end

function ring_of(name)
  local ring = rings[name]
  if not ring then
    local packed = call("HGET", S .. "rings", name)
    ring = packed and #packed == RING_BYTES and {unpack_(RING_FORM, packed)} or new_ring()
    rings[name] = ring
  end
  return ring
end

local function remember(name) changed[name] = true end

function write_rings()
  for name in pairs(changed) do
    call("HSET", S .. "rings", name, pack_(RING_FORM, unpack(rings[name], 1, RING_FIRST_REST)))
  end
  changed = {}
end

local function park(name, ring, member)
  call("ZADD", S .. "resting:" .. name, string.format("%.2f", member[MEMBER_DUE]), pack_member(member))
  if ring[RING_FIRST_REST] == 0 or member[MEMBER_DUE] < ring[RING_FIRST_REST] then
    ring[RING_FIRST_REST] = member[MEMBER_DUE]
    remember(name)
  end
end

local function look_for_first(name, ring)
  local _, first = unpack(call("ZRANGE", S .. "resting:" .. name, 0, 0, "WITHSCORES"), 1, 2)
  ring[RING_FIRST_REST] = tonumber(first) or 0
  remember(name)
end

-- Members whose rest is over stand at the head of the ring.
local function end_rests(name, ring)
  if ring[RING_FIRST_REST] == 0 or ring[RING_FIRST_REST] > now then return end
  local due = call("ZRANGEBYSCORE", S .. "resting:" .. name, "-inf", now, "LIMIT", 0, COME_BACK)
  for i = #due, 1, -1 do
    local member = unpack_member(due[i])
    member[MEMBER_BANNED_AT] = 0
    due[i] = pack_member(member)
  end
  if #due > 0 then
    call("ZREMRANGEBYRANK", S .. "resting:" .. name, 0, #due - 1)
    for i = #due, 1, -1 do call("LPUSH", S .. "ring:" .. name, due[i]) end
  end
  look_for_first(name, ring)
end

-- Members that this lane never had are dealt before others have their second turn, but for one that is held.
local function deal(name, pool, ring, count)
  local key = S .. "added:" .. pool.name
  local added = call("ZRANGEBYSCORE", key, "(" .. ring[RING_DEALT], "+inf", "WITHSCORES", "LIMIT", 0, count)
  local dealt = {}
  for i = 1, #added, 2 do
    dealt[#dealt + 1] = new_member(added[i], tonumber(added[i + 1]))
    ring[RING_DEALT] = tonumber(added[i + 1])
  end
  if #added == 0 then ring[RING_DEALT] = pool.last end
  remember(name)
  return dealt
end

local function next_members(name, pool, ring, count)
  local key, found = S .. "ring:" .. name, {}
  if ring[RING_DEALT] < pool.last then
    local head = call("LINDEX", key, 0)
    head = head and unpack_member(head)
    if not head or head[MEMBER_USES] == 0 then
      local dealt = deal(name, pool, ring, count)
      if #dealt > 0 then return dealt end
    else
      count = 1
    end
  end
  local packed = call("LPOP", key, count) or {}
  for i = 1, #packed do found[i] = unpack_member(packed[i]) end
  return found
end

-- Until when a member rests for all lanes, or its limits are used up; nil: it may go out.
local function held_up(pool, member, latest)
  local busy
  if pool.faulty then
    local packed = call("HGET", S .. "faults:" .. pool.name, member[MEMBER_ID])
    local _, down_until = unpack_(FAULTS_FORM, packed or NO_FAULTS)
    if down_until > now then busy = down_until end
  end
  if pool.limited then
    local packed = call("HGET", S .. "load:" .. pool.name, member[MEMBER_ID])
    local next_start, visits = unpack_(LOAD_FORM, packed or NO_LOAD)
    local most = pool.rules[RULE_MEMBER_CONCURRENCY]
    if next_start > latest then busy = max(busy or 0, next_start) end
    if most > 0 and visits >= most then busy = max(busy or 0, now + FULL_FOR) end
    member.next_start = next_start
  end
  return busy
end

-- Up to so many members that may start until the latest moment. They are out of the ring; `go_out` or `put_back` them.
function take_members(name, wanted, latest, own_gap)
  local pool, ring = pool_named(pool_of(name)), ring_of(name)
  if not pool then return {} end
  if wanted_gap(ring, max(own_gap, pool.rules[RULE_INTERVAL])) then remember(name) end
  end_rests(name, ring)
  local taken, looks, waiting = {}, 0, false
  while #taken < wanted and looks < wanted + LOOKS and not waiting do
    local some = next_members(name, pool, ring, wanted - #taken)
    if #some == 0 then break end
    local ids = {}
    for i = 1, #some do ids[i] = some[i][MEMBER_ID] end
    local known = call("HMGET", S .. "pools:" .. pool.name, unpack(ids, 1, #ids))
    for i = 1, #some do
      local member = some[i]
      looks = looks + 1
      local number, weight = unpack_(KNOWN_FORM, known[i] or NO_MEMBER)
      local busy = number == member[MEMBER_ADDED] and not waiting and held_up(pool, member, latest)
      if number ~= member[MEMBER_ADDED] then
        -- It was removed from the pool: dropped here.
      elseif busy then
        member[MEMBER_DUE] = max(member[MEMBER_DUE], ceil_unit(busy))
        park(name, ring, member)
      elseif waiting or member[MEMBER_DUE] > latest then
        -- Those behind it are due later still.
        waiting = waiting or {}
        waiting[#waiting + 1] = pack_member(member)
      elseif loses_turn(member, weight, chance()) then
        member[MEMBER_USES] = 0
        call("RPUSH", S .. "ring:" .. name, pack_member(member))
      else
        taken[#taken + 1] = member
      end
    end
  end
  if waiting then
    for i = #waiting, 1, -1 do call("LPUSH", S .. "ring:" .. name, waiting[i]) end
  end
  return taken
end

-- Members that were taken and are not needed, as they were.
function put_back(name, taken, from)
  for i = #taken, from, -1 do call("LPUSH", S .. "ring:" .. name, pack_member(taken[i])) end
end

-- The member goes out, at this moment or as soon as it is due: the start.
function go_out(name, member, start)
  local pool, ring = pool_named(pool_of(name)), ring_of(name)
  start = max(start, member[MEMBER_DUE], member.next_start or 0)
  member[MEMBER_DUE] = ceil_unit(start + member_interval(member, max(ring[RING_GAP], pool.rules[RULE_INTERVAL])))
  if pool.limited then
    local key = S .. "load:" .. pool.name
    local _, visits = unpack_(LOAD_FORM, call("HGET", key, member[MEMBER_ID]) or NO_LOAD)
    call("HSET", key, member[MEMBER_ID], pack_(LOAD_FORM, start + pool.rules[RULE_MEMBER_INTERVAL], visits + 1))
  end
  return start
end

local function count_fault(pool, member, result)
  local key = S .. "faults:" .. pool.name
  if result == RESULT_FAULT then
    local faults = unpack_(FAULTS_FORM, call("HGET", key, member[MEMBER_ID]) or NO_FAULTS)
    faults = min(65535, faults + 1)
    call("HSET", key, member[MEMBER_ID], pack_(FAULTS_FORM, faults, now + down_for(faults, chance())))
  elseif pool.faulty and result ~= RESULT_UNUSED then
    call("HDEL", key, member[MEMBER_ID])
  end
end

local function unload(pool, member)
  if not pool.limited then return end
  local key = S .. "load:" .. pool.name
  local next_start, visits = unpack_(LOAD_FORM, call("HGET", key, member[MEMBER_ID]) or NO_LOAD)
  call("HSET", key, member[MEMBER_ID], pack_(LOAD_FORM, next_start, max(0, visits - 1)))
end

local lift_since

-- The visit is over: the member goes back to where it belongs. Gives the ring.
function come_back_from(name, packed, result, retry_after, luck)
  local pool, ring, member = pool_named(pool_of(name)), ring_of(name), unpack_member(packed)
  if not pool then return ring end
  count_fault(pool, member, result)
  unload(pool, member)
  local suspected_at = ring[RING_SUSPECTED_AT]
  local place, lifts = returned(member, ring, result, pool.rules, retry_after, luck)
  if result ~= RESULT_UNUSED then remember(name) end
  if place == PLACE_RESTING then
    park(name, ring, member)
  else
    call(place == PLACE_HEAD and "LPUSH" or "RPUSH", S .. "ring:" .. name, pack_member(member))
  end
  if lifts then lift_since(name, ring, suspected_at) end
  return ring
end

local function lift_where(name, ring, is_meant)
  local key, count = S .. "resting:" .. name, 0
  local resting = call("ZRANGE", key, 0, LIFTED - 1)
  for i = 1, #resting do
    local member = unpack_member(resting[i])
    if member[MEMBER_BANNED_AT] > 0 and is_meant(member) then
      lifted(member)
      call("ZREM", key, resting[i])
      call("RPUSH", S .. "ring:" .. name, pack_member(member))
      count = count + 1
    end
  end
  if count > 0 then look_for_first(name, ring) end
  return count
end

lift_since = function(name, ring, since)
  return lift_where(name, ring, function(member) return member[MEMBER_BANNED_AT] >= since end)
end

-- End quarantines of these members (a set of ids), or of all. How many.
function lift(name, members)
  return lift_where(name, ring_of(name), function(member) return not members or members[member[MEMBER_ID]] end)
end

-- From when on a member may go out; nil while all are out.
function members_free_at(name)
  local pool, ring = pool_named(pool_of(name)), ring_of(name)
  if not pool then return nil end
  if ring[RING_DEALT] < pool.last then return 0 end
  local head, free = call("LINDEX", S .. "ring:" .. name, 0), nil
  if head then free = unpack_member(head)[MEMBER_DUE] - HORIZON end
  if ring[RING_FIRST_REST] > 0 then free = free and min(free, ring[RING_FIRST_REST]) or ring[RING_FIRST_REST] end
  return free
end
