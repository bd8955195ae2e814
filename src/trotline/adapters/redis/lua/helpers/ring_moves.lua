-- Where a member of a lane goes: to its ring, or to those that rest.
--
--   S resting:LANE  zset  members in quarantine, or due much later -> due and more (RESTING_FORM in lua_layouts.py)
--
-- A member is in one place of a lane: ring, resting, or out, at the end of the lease's parcel (dequeued_tasks.lua). One that was
-- removed from the pool rests where it is met, and comes back if it is added again: then it has the same number. One with
-- an unknown number is dropped.
--
-- part of pool_members
-- uses clock: call now
-- uses job_counters: max unpack_ S
-- uses lane_pool: pool_of
-- uses account_locks: account_locks
-- uses wake_lane: wake_lane
-- uses proxy_ring: proxy_ring
-- uses proxy_pools: pool_named
-- uses block_evidence: judge_site
-- uses ring_store: sooner_lanes ring_of change_ring put_at_head put_at_tail
-- exports: put_member end_rests set_aside follow_changes lift_where test_a_ban hand_over

-- Of one call and lane: members whose rest has ended, quarantines lifted.
local COME_BACK, LIFTED = 200, 500
-- A member that was removed from its pool rests for a day at a time.
local DAY = 86400

function put_member(name, ring, member, place)
  if place == PLACE_TAIL then
    put_at_tail(name, proxy_ring().pack(member), "")
  elseif place == PLACE_HEAD then
    put_at_head(name, proxy_ring().pack(member))
    sooner_lanes[name] = true
  else
    call("ZADD", S .. "resting:" .. name, proxy_ring().pack_resting(member))
    if ring[RING_FIRST_REST] == 0 or member[MEMBER_DUE] < ring[RING_FIRST_REST] then
      ring[RING_FIRST_REST], sooner_lanes[name] = member[MEMBER_DUE], true
      change_ring(name)
    end
  end
end

local function look_for_first(name, ring)
  local _, first = unpack(call("ZRANGE", S .. "resting:" .. name, 0, 0, "WITHSCORES"), 1, 2)
  ring[RING_FIRST_REST] = first and proxy_ring().due_of(tonumber(first)) or 0
  change_ring(name)
end

-- Members whose rest is over go to the tail of the ring.
function end_rests(name, pool, ring)
  local key, rules = S .. "resting:" .. name, proxy_ring()
  local due = call("ZRANGEBYSCORE", key, "-inf", rules.due_now(), "WITHSCORES", "LIMIT", 0, COME_BACK)
  if #due > 0 then call("ZREMRANGEBYRANK", key, 0, #due / 2 - 1) end
  for i = 1, #due, 2 do
    local member = rules.unpack_resting(due[i], tonumber(due[i + 1]), pool.last)
    member[MEMBER_BANNED_AT] = 0
    put_member(name, ring, member, PLACE_TAIL)
  end
  look_for_first(name, ring)
end

-- It was removed from the pool.
function set_aside(name, pool, ring, member)
  local packed = call("HGET", S .. "removed:" .. pool.name, member[MEMBER_ID])
  if not packed or unpack_(KNOWN_FORM, packed) ~= member[MEMBER_ADDED] then return end
  member[MEMBER_USES], member[MEMBER_DUE] = SET_ASIDE, max(member[MEMBER_DUE], proxy_ring().ceil_unit(now + DAY))
  put_member(name, ring, member, PLACE_RESTING)
end

-- The pool has changed: members that are in it again come back.
function follow_changes(name, pool, ring)
  ring[RING_CHANGES] = pool.changes
  change_ring(name)
  local key, rules, back = S .. "resting:" .. name, proxy_ring(), 0
  local resting = call("ZREVRANGE", key, 0, LIFTED - 1, "WITHSCORES")
  for i = 1, #resting, 2 do
    local member = rules.unpack_resting(resting[i], tonumber(resting[i + 1]), pool.last)
    local known = member[MEMBER_USES] == SET_ASIDE and call("HGET", S .. "pools:" .. pool.name, member[MEMBER_ID])
    if known and unpack_(KNOWN_FORM, known) == member[MEMBER_ADDED] then
      call("ZREM", key, resting[i])
      member[MEMBER_USES] = 0
      -- The interval that it had left is forgotten with its due time.
      member[MEMBER_DUE] = rules.ceil_unit(now + rules.wanted_interval(pool.rules, ring))
      put_member(name, ring, member, PLACE_TAIL)
      back = back + 1
    end
  end
  if back > 0 then look_for_first(name, ring) end
end

-- End the quarantines that are meant.
function lift_where(name, ring, blocked_at, is_meant)
  local key, pool, rules, count = S .. "resting:" .. name, pool_named(pool_of(name)), proxy_ring(), 0
  local resting = call("ZRANGE", key, 0, LIFTED - 1, "WITHSCORES")
  for i = 1, #resting, 2 do
    local member = rules.unpack_resting(resting[i], tonumber(resting[i + 1]), pool.last)
    if member[MEMBER_BANNED_AT] > 0 and is_meant(member) then
      rules.lift(member, rules.wanted_interval(pool.rules, ring), blocked_at)
      call("ZREM", key, resting[i])
      put_member(name, ring, member, PLACE_TAIL)
      count = count + 1
    end
  end
  if count > 0 then look_for_first(name, ring) end
end

-- The first member that was banned in the block by the site goes out: are these bans over?
function test_a_ban(name, ring, since, blocked_at)
  local first
  local resting = call("ZRANGE", S .. "resting:" .. name, 0, LIFTED - 1, "WITHSCORES")
  for i = 1, #resting, 2 do
    local member = proxy_ring().unpack_resting(resting[i], tonumber(resting[i + 1]), 0)
    local at = member[MEMBER_BANNED_AT]
    if at > 0 and at >= since and (not first or at < first[MEMBER_BANNED_AT]) then first = member end
  end
  if not first then return end
  lift_where(name, ring, blocked_at, function(each) return each[MEMBER_ID] == first[MEMBER_ID] end)
  ring[RING_TESTED] = first[MEMBER_ID]
  judge_site(name, ring)
end

-- The account is free: the first lane that waits for it need not wait for its next look. Where visits through one
-- account have an interval, it is not known how much of that is left.
function hand_over(pool, id)
  local name, prefix = account_locks().next_in_turn(pool.name, id)
  if not name or call("EXISTS", prefix .. "job") == 0 then return end
  local key, ring, rules = S .. "resting:" .. name, ring_of(name), proxy_ring()
  local wanted = rules.wanted_interval(pool.rules, ring)
  local later = call("ZRANGEBYSCORE", key, "(" .. rules.due_now(), "+inf", "WITHSCORES", "LIMIT", 0, COME_BACK)
  for i = 1, #later, 2 do
    local member = rules.unpack_resting(later[i], tonumber(later[i + 1]), pool.last)
    if member[MEMBER_ID] == id and member[MEMBER_BANNED_AT] == 0 and member[MEMBER_USES] ~= SET_ASIDE
      and rules.interval(member, wanted) == 0 then
      call("ZREM", key, later[i])
      member[MEMBER_DUE] = rules.ceil_unit(now)
      put_member(name, ring, member, PLACE_HEAD)
      look_for_first(name, ring)
      wake_lane(prefix, name)
      return
    end
  end
end
