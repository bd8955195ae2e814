-- What a visit's result means for a member of a proxy pool: rules/proxy_ring.py, word for word.
-- A member in a lane is an array, and so is what is known of the lane's ring; layouts.py names their places.
--
-- uses clock: now
-- exports: pack_member unpack_member new_member new_ring ceil_unit member_interval loses_turn returned lifted wanted_gap down_for touches_lane

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

function pack_member(member)
  return struct.pack(MEMBER_FORM, member[MEMBER_ID], member[MEMBER_ADDED], floor(member[MEMBER_DUE] / UNIT + 0.5),
    ceil(member[MEMBER_BANNED_AT]), unpack(member, MEMBER_QUALITY, MEMBER_SLOW))
end

function unpack_member(packed)
  local member = {struct.unpack(MEMBER_FORM, packed)}
  member[MEMBER_DUE] = member[MEMBER_DUE] * UNIT
  return member
end

function new_member(member, added)
  return {member, added, 0, 0, NEW_QUALITY, 0, 0, 0, 0}
end

function new_ring()
  return {0, 0, 0, 0, 0, 0, 0, 0}
end

-- In whole units, never earlier.
function ceil_unit(moment)
  return ceil(moment / UNIT) * UNIT
end

-- Between two starts through this member, after its 429s.
function member_interval(member, wanted)
  if member[MEMBER_SLOW] == 0 then return wanted end
  return max(wanted, SLOW_BASE) * 2 ^ (member[MEMBER_SLOW] / SLOWER)
end

-- weight: from 0 to 255. chance in [0, 1).
function loses_turn(member, weight, chance)
  local share = min(1, member[MEMBER_QUALITY] / NEW_QUALITY) * (weight / 255)
  if member[MEMBER_STRIKES] > 0 then share = min(share, PROBATION) end
  return chance >= max(LEAST_SHARE, share)
end

-- Wald's test: does the site block everybody, or single members?
local function weigh(ring, blocked)
  local usual = min(MOST_SHARE, max(USUAL_SHARE, 1.5 * ring[RING_SHARE]))
  local share = ring[RING_SHARE] + SHARE_WEIGHT * ((blocked and 1 or 0) - ring[RING_SHARE])
  if blocked then
    ring[RING_EVIDENCE] = min(SUSPICION, ring[RING_EVIDENCE] + math.log(BLOCKED_IF_SITE / usual))
    if ring[RING_SITE_BLOCKED] == 0 then ring[RING_SHARE] = share end
    if ring[RING_SUSPECTED_AT] == 0 then ring[RING_SUSPECTED_AT] = now end
    if ring[RING_EVIDENCE] >= SUSPICION then ring[RING_SITE_BLOCKED] = 1 end
    return
  end
  ring[RING_SHARE] = share
  ring[RING_EVIDENCE] = ring[RING_EVIDENCE] + math.log((1 - BLOCKED_IF_SITE) / (1 - usual))
  if ring[RING_SITE_BLOCKED] == 1 or ring[RING_EVIDENCE] <= 0 then
    ring[RING_EVIDENCE], ring[RING_SUSPECTED_AT] = 0, 0
  end
  ring[RING_SITE_BLOCKED] = 0
end

local function place_of(member)
  return member[MEMBER_DUE] > now + PARKED and PLACE_RESTING or PLACE_TAIL
end

local function ban(member, ring, rules, chance)
  local strikes = member[MEMBER_STRIKES]
  if ring[RING_SITE_BLOCKED] == 0 then strikes = min(MOST_STRIKES, strikes + 1) end
  weigh(ring, true)
  local rest = min(rules[RULE_LONGEST_REST], rules[RULE_REST] * 2 ^ (max(strikes, 1) - 1)) * (1 + RING_JITTER * chance)
  member[MEMBER_QUALITY] = member[MEMBER_QUALITY] - ceil(member[MEMBER_QUALITY] / LEARN)
  member[MEMBER_DUE], member[MEMBER_BANNED_AT] = ceil_unit(now + rest), now
  member[MEMBER_USES], member[MEMBER_GOOD], member[MEMBER_STRIKES] = 0, 0, strikes
  return PLACE_RESTING
end

local function good(member, ring, rules)
  local site_blocked = ring[RING_SITE_BLOCKED] == 1
  local uses = member[MEMBER_USES] + 1
  local held = uses < rules[RULE_HOLD]
  member[MEMBER_GOOD] = min(CLEARED, member[MEMBER_GOOD] + 1)
  member[MEMBER_QUALITY] = member[MEMBER_QUALITY] + ceil((BEST - member[MEMBER_QUALITY]) / LEARN)
  member[MEMBER_USES] = held and uses or 0
  if member[MEMBER_GOOD] >= CLEARED then member[MEMBER_STRIKES] = 0 end
  member[MEMBER_SLOW] = max(0, member[MEMBER_SLOW] - 1)
  weigh(ring, false)
  if held and member[MEMBER_DUE] <= now + PARKED then return PLACE_HEAD, site_blocked end
  return place_of(member), site_blocked
end

-- Where the member goes after a visit, and whether quarantines are lifted: those since the ring was suspected, as it was
-- before this call. Both arrays are changed.
function returned(member, ring, result, rules, retry_after, chance)
  if result == RESULT_GOOD then return good(member, ring, rules) end
  if result == RESULT_BLOCKED then return ban(member, ring, rules, chance), false end
  if result == RESULT_THROTTLED then
    local pause = max(retry_after, member_interval(member, rules[RULE_INTERVAL]))
    member[MEMBER_DUE] = max(member[MEMBER_DUE], ceil_unit(now + pause))
    member[MEMBER_SLOW], member[MEMBER_USES] = min(MOST_SLOW, member[MEMBER_SLOW] + SLOWER), 0
    return place_of(member), false
  end
  if result == RESULT_FAULT then
    member[MEMBER_DUE] = max(member[MEMBER_DUE], ceil_unit(now + FIRST_DOWN * (1 + RING_JITTER * chance)))
    member[MEMBER_QUALITY] = member[MEMBER_QUALITY] - floor(member[MEMBER_QUALITY] / LEARN)
    member[MEMBER_USES] = 0
    return place_of(member), false
  end
  return PLACE_HEAD, false
end

-- The ban was not its own.
function lifted(member)
  member[MEMBER_BANNED_AT], member[MEMBER_DUE] = 0, ceil_unit(now)
  member[MEMBER_STRIKES], member[MEMBER_GOOD] = max(0, member[MEMBER_STRIKES] - 1), 0
end

-- Does the lane itself learn from this result?
function touches_lane(ring, result)
  return ring[RING_SITE_BLOCKED] == 1 or (result ~= RESULT_BLOCKED and result ~= RESULT_THROTTLED)
end

-- The longest interval per member of the jobs that use the lane. True if the ring has changed.
function wanted_gap(ring, own)
  local age = now - ring[RING_GAP_AT]
  if own > ring[RING_GAP] or age > IN_FORCE or (own == ring[RING_GAP] and age > IN_FORCE / 2) then
    ring[RING_GAP], ring[RING_GAP_AT] = own, now
    return true
  end
  return false
end

-- How long a member with so many failures of its own in a row rests for all lanes.
function down_for(faults, chance)
  if faults < FAULTS then return 0 end
  return min(LONGEST_DOWN, FIRST_DOWN * 2 ^ min(faults - FAULTS, DOWN_DOUBLINGS)) * (1 + RING_JITTER * chance)
end
