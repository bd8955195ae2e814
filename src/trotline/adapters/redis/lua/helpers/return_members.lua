-- Members of proxy pools come back from visits, and those who wait for one are told.
--
--   S wanting:POOL  hash  lane -> prefixes of jobs that wait there for any member
--
-- A good visit does not read the ring, and needs no more of the lane than whether there is evidence against its site.
--
-- part of pool_members
-- uses clock: call now
-- uses job_counters: sub min unpack_ P S
-- uses lane_pool: pool_of
-- uses wake_lane: wake_lane
-- uses proxy_ring: proxy_ring
-- uses proxy_pools: pool_named
-- uses block_evidence: all_calm evidence_of judge_site
-- uses member_limits: count_fault unload
-- uses ring_store: open_rings sooner_lanes ring_of put_at_tail first_of flush_tails
-- uses ring_moves: put_member lift_where test_a_ban hand_over
-- exports: begin_returns is_plainly_back come_back site_blocked served_sooner member_free_at want_member wake_waiting

-- Lanes to which members came back (all of them do: visits have ended).
local returned, all_return
-- In units: who is due later does not go to a ring.
local parked
local better -- once

function begin_returns()
  returned, all_return, parked = {}, false, (now + PARKED) * UNITS
  better = better or proxy_ring().better
end

-- After a good visit most members go to the tail, and only their state may change. False if this one needs more. packed
-- ends with the member.
function is_plainly_back(name, pool, packed)
  if not pool or not pool.simple then return false end
  local ring = not all_calm and (open_rings[name] or evidence_of(name) and ring_of(name))
  if ring and (ring[RING_BLOCKED_AT] > 0 or ring[RING_TESTED] ~= proxy_ring().not_tested) then return false end
  local size = #packed
  local due, state = unpack_(MEMBER_STATE_FORM, packed, size - MEMBER_BYTES + MEMBER_NAME + 1)
  local after = better[state]
  if not after or due > parked then return false end
  if pool.faulty then
    count_fault(pool, sub(packed, -MEMBER_BYTES, -MEMBER_BYTES + MEMBER_ID_BYTES - 1), RESULT_GOOD)
  end
  if ring and proxy_ring().weigh(ring, false) then judge_site(name, ring) end
  put_at_tail(name, sub(packed, size - MEMBER_BYTES + 1, size - MEMBER_BYTES + MEMBER_FRONT), after)
  all_return = true
  return true
end

local function known_of(ring)
  return {ring[RING_EVIDENCE], ring[RING_SHARE], ring[RING_SUSPECTED_AT], ring[RING_BLOCKED_AT], ring[RING_TESTED]}
end

local function are_other(before, after)
  for i = 1, #before do
    if before[i] ~= after[i] then return true end
  end
  return false
end

local function lift(name, ring, lifts_bans, suspected_at, blocked_at)
  if lifts_bans == LIFT_ONE then
    test_a_ban(name, ring, suspected_at, blocked_at)
  elseif lifts_bans == LIFT_ALL then
    local since = ring[RING_TESTED_SINCE]
    lift_where(name, ring, ring[RING_TESTED_BLOCKED_AT], function(each) return each[MEMBER_BANNED_AT] >= since end)
  end
end

local function lift_these(name, ring, lifts)
  local meant = {}
  for i = 1, #lifts do meant[lifts[i]] = true end
  lift_where(name, ring, 0, function(each) return meant[each[MEMBER_ID]] end)
end

-- The visit is over: the member goes back to where it belongs. lifts: members (6 bytes each) whose ban was the page's
-- fault.
function come_back(name, packed, result, retry_after, luck, lifts)
  local pool = pool_named(pool_of(name))
  if not pool or (result == RESULT_GOOD and not lifts and is_plainly_back(name, pool, packed)) then return end
  local ring, member, rules = ring_of(name), proxy_ring().unpack(packed), proxy_ring()
  if pool.faulty or result == RESULT_FAULT then count_fault(pool, member[MEMBER_ID], result) end
  if pool.limited and not pool.accounts then unload(pool, member) end
  local suspected_at, blocked_at, fine = ring[RING_SUSPECTED_AT], ring[RING_BLOCKED_AT], rules.may_lift(ring)
  local before = known_of(ring)
  local place, lifts_bans = rules.returned(member, ring, result, pool.rules, retry_after, luck)
  if are_other(before, known_of(ring)) then judge_site(name, ring) end
  put_member(name, ring, member, place)
  returned[name] = true
  if pool.accounts then hand_over(pool, member[MEMBER_ID]) end
  lift(name, ring, lifts_bans, suspected_at, blocked_at)
  if fine and lifts and #lifts > 0 then lift_these(name, ring, lifts) end
end

-- Does the site block all of them?
function site_blocked(name)
  return not all_calm and (open_rings[name] or evidence_of(name)) and ring_of(name)[RING_BLOCKED_AT] > 0
end

-- The lanes to which members came back, and which may be served sooner: they have to be queued again.
function served_sooner()
  local found = {}
  flush_tails()
  for name in pairs(sooner_lanes) do
    if all_return or returned[name] then found[#found + 1] = name end
  end
  return found
end

-- From when on a member may go out; nil while all are out.
function member_free_at(name)
  local pool, ring = pool_named(pool_of(name)), ring_of(name)
  if not pool then return nil end
  if ring[RING_DEALT] < pool.last or ring[RING_CHANGES] ~= pool.changes then return 0 end
  local first = first_of(name)
  local free = first and first[MEMBER_DUE] - HORIZON
  if ring[RING_FIRST_REST] > 0 then free = min(free or ring[RING_FIRST_REST], ring[RING_FIRST_REST]) end
  return free
end

-- All members are out, or there are none: the job is woken when one comes.
function want_member(name)
  local key = S .. "wanting:" .. pool_of(name)
  local prefixes = call("HGET", key, name) or ""
  if not string.find(prefixes, P .. " ", 1, true) then call("HSET", key, name, prefixes .. P .. " ") end
end

-- Other jobs that wait for a member there are woken. This one has looked already, and may wait again.
local function wake_other_jobs(name)
  local key = S .. "wanting:" .. pool_of(name)
  local prefixes = call("HGET", key, name)
  if not prefixes or prefixes == P .. " " then return end
  call("HDEL", key, name)
  for prefix in string.gmatch(prefixes, "%S+") do
    if prefix == P then call("HSET", key, name, P .. " ") else wake_lane(prefix, name) end
  end
end

function wake_waiting()
  for name in pairs(sooner_lanes) do
    if all_return or returned[name] then wake_other_jobs(name) end
  end
  returned, all_return = {}, false
end
