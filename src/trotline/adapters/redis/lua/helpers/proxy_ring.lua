-- What a visit's result means for a member of a proxy pool: rules/proxy_ring.py, word for word.
-- A member in a lane is an array, and so is what is known of the lane's ring; lua_layouts.py names their places. The functions
-- are made when they are needed: most calls have nothing to do with proxy pools.
--
-- uses clock: now
-- exports: proxy_ring

local MOST_STATES = 500
local made -- once

local function make()
  local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
  local packed_as, unpacked = struct.pack, struct.unpack

  local ring_rules = {not_tested = string.rep("\0", 6)}

  -- One that is in no quarantine.
  function ring_rules.pack(member)
    return packed_as(MEMBER_FORM, member[MEMBER_ID], member[MEMBER_ADDED], floor(member[MEMBER_DUE] * UNITS + 0.5),
      member[MEMBER_QUALITY], member[MEMBER_USES], member[MEMBER_GOOD], member[MEMBER_STRIKES], member[MEMBER_SLOW])
  end

  -- at: where it begins.
  function ring_rules.unpack(packed, at)
    local member = {unpacked(MEMBER_FORM, packed, at or 1)}
    member[MEMBER_DUE], member[MEMBER_BANNED_AT] = member[MEMBER_DUE] / UNITS, 0
    return member
  end

  -- What a new member has behind its number.
  ring_rules.new_rest = packed_as("<I5BBBBB", 0, NEW_QUALITY, 0, 0, 0, 0)

  -- A member that rests: its score, as text, and its value in the sorted set.
  function ring_rules.pack_resting(member)
    local banned = ceil(member[MEMBER_BANNED_AT]) % RESTING_NUMBERS
    -- 0 stands for none.
    if banned == 0 and member[MEMBER_BANNED_AT] > 0 then banned = 1 end
    local score = floor(member[MEMBER_DUE] * UNITS + 0.5) * RESTING_SCALE + member[MEMBER_STRIKES] * RESTING_STRIKE + member[MEMBER_SLOW]
    return string.format("%.0f", score), packed_as(RESTING_FORM, member[MEMBER_ID], member[MEMBER_ADDED] % RESTING_NUMBERS,
      banned, member[MEMBER_USES], member[MEMBER_QUALITY] * 4 + member[MEMBER_GOOD])
  end

  -- The latest moment whose last bits are these.
  local function latest_with(bits, upto)
    return upto - (upto - bits) % RESTING_NUMBERS
  end

  -- last: the number of the member that was added to the pool last.
  function ring_rules.unpack_resting(packed, score, last)
    local id, added, banned, uses, known = unpacked(RESTING_FORM, packed)
    local units = floor(score / RESTING_SCALE)
    local state, due = score - units * RESTING_SCALE, units / UNITS
    return {id, latest_with(added, last), due, floor(known / 4), uses, known % 4, floor(state / RESTING_STRIKE), state % RESTING_STRIKE,
      banned > 0 and latest_with(banned, ceil(due)) or 0}
  end

  function ring_rules.due_of(score)
    return floor(score / RESTING_SCALE) / UNITS
  end

  -- The score up to which members are due now.
  function ring_rules.due_now()
    local units = floor(now * UNITS)
    -- The product may be a little less than it should be.
    if (units + 1) / UNITS <= now then units = units + 1 end
    return string.format("%.0f", (units + 1) * RESTING_SCALE - 1)
  end

  function ring_rules.ceil_unit(moment)
    return ceil(moment * UNITS) / UNITS
  end

  local ceil_unit = ring_rules.ceil_unit

  -- Between two starts through this member, after its 429s.
  function ring_rules.interval(member, wanted)
    if member[MEMBER_SLOW] == 0 then return wanted end
    return max(wanted, SLOW_BASE) * 2 ^ (member[MEMBER_SLOW] / SLOWER)
  end

  -- Between two starts of the lane through one member, before its 429s.
  function ring_rules.wanted_interval(rules, ring)
    return max(rules[RULE_INTERVAL], ring[RING_GAP])
  end

  -- Most members: no chance is needed.
  function ring_rules.has_all_turns(member, weight)
    return member[MEMBER_STRIKES] == 0 and member[MEMBER_QUALITY] >= NEW_QUALITY and weight == MOST_WEIGHT
  end

  -- weight: from 0 to MOST_WEIGHT. chance in [0, 1).
  function ring_rules.loses_turn(member, weight, chance)
    if member[MEMBER_STRIKES] > 0 and member[MEMBER_GOOD] == 0 then return false end
    local share = min(1, member[MEMBER_QUALITY] / NEW_QUALITY) * (weight / MOST_WEIGHT)
    if member[MEMBER_STRIKES] > 0 then share = min(share, PROBATION) end
    return chance >= max(LEAST_SHARE, share)
  end

  local function place_of(member)
    local parked = member[MEMBER_SLOW] > 0 and 0 or PARKED
    return member[MEMBER_DUE] > now + parked and PLACE_RESTING or PLACE_TAIL
  end

  -- It lost its turn: as if it had gone out now. Gives where it goes.
  function ring_rules.pass_over(member, wanted)
    member[MEMBER_DUE] = max(member[MEMBER_DUE], ceil_unit(now + max(LOST_TURN, ring_rules.interval(member, wanted))))
    return place_of(member)
  end

  -- Wald's test: does the site block everybody, or single members? False if the ring stays as it is.
  function ring_rules.weigh(ring, blocked)
    if not blocked and ring[RING_EVIDENCE] == 0 and ring[RING_SHARE] == 0 and ring[RING_SUSPECTED_AT] == 0
      and ring[RING_BLOCKED_AT] == 0 then
      return false
    end
    local usual = min(MOST_SHARE, max(USUAL_SHARE, USUAL_MARGIN * ring[RING_SHARE]))
    local share = ring[RING_SHARE] + SHARE_WEIGHT * ((blocked and 1 or 0) - ring[RING_SHARE])
    local was_blocked = ring[RING_BLOCKED_AT] > 0
    if blocked then
      ring[RING_EVIDENCE] = min(SUSPICION, ring[RING_EVIDENCE] + math.log(BLOCKED_IF_SITE / usual))
      if not was_blocked then ring[RING_SHARE] = share end
      if ring[RING_SUSPECTED_AT] == 0 then ring[RING_SUSPECTED_AT] = now end
      if not was_blocked and ring[RING_EVIDENCE] >= SUSPICION then ring[RING_BLOCKED_AT] = now end
      return true
    end
    ring[RING_EVIDENCE] = ring[RING_EVIDENCE] + math.log((1 - BLOCKED_IF_SITE) / (1 - usual))
    ring[RING_SHARE], ring[RING_BLOCKED_AT] = share < NO_SHARE and 0 or share, 0
    if was_blocked or ring[RING_EVIDENCE] <= 0 then ring[RING_EVIDENCE], ring[RING_SUSPECTED_AT] = 0, 0 end
    return true
  end

  local weigh = ring_rules.weigh

  -- Has the visit raised the alarm, or begun after it? blocked_at: before the visit.
  local function is_probe(member, ring, rules, blocked_at)
    return blocked_at == 0
      or member[MEMBER_DUE] - ring_rules.interval(member, ring_rules.wanted_interval(rules, ring)) > blocked_at
  end

  local function ban(member, ring, rules, chance)
    local strikes, blocked_at = member[MEMBER_STRIKES], ring[RING_BLOCKED_AT]
    if blocked_at == 0 then strikes = min(MOST_STRIKES, strikes + 1) end
    weigh(ring, true)
    if ring[RING_TESTED] == member[MEMBER_ID] then ring[RING_TESTED] = ring_rules.not_tested end
    local rest = min(rules[RULE_LONGEST_REST], rules[RULE_REST] * 2 ^ (max(strikes, 1) - 1))
    if rules[RULE_PROBE] > 0 and ring[RING_BLOCKED_AT] > 0 and is_probe(member, ring, rules, blocked_at) then
      rest = min(rest, rules[RULE_PROBE])
    end
    rest = rest * (1 + RING_JITTER * chance)
    member[MEMBER_QUALITY] = member[MEMBER_QUALITY] - ceil(member[MEMBER_QUALITY] / LEARN)
    member[MEMBER_DUE], member[MEMBER_BANNED_AT] = max(member[MEMBER_DUE], ceil_unit(now + rest)), now
    member[MEMBER_USES], member[MEMBER_GOOD], member[MEMBER_STRIKES] = 0, 0, strikes
    return PLACE_RESTING, LIFT_NONE
  end

  -- What a good visit makes of a member. Is it held?
  local function improve(member, hold)
    local always = hold == 0
    local uses = always and 1 or member[MEMBER_USES] + 1
    local held = always or uses < hold
    member[MEMBER_GOOD] = min(CLEARED, member[MEMBER_GOOD] + 1)
    member[MEMBER_QUALITY] = member[MEMBER_QUALITY] + ceil((BEST - member[MEMBER_QUALITY]) / LEARN)
    member[MEMBER_USES] = held and uses or 0
    if member[MEMBER_GOOD] >= CLEARED then member[MEMBER_STRIKES] = 0 end
    member[MEMBER_SLOW] = max(0, member[MEMBER_SLOW] - 1)
    return held
  end

  -- A table that finds each of its values once. It is kept from call to call, and cleared when it has many.
  local function found_once(find)
    local count = 0
    return setmetatable({}, {__index = function(found, key)
      local value = find(key)
      if count >= MOST_STATES then
        for known in pairs(found) do found[known] = nil end
        count = 0
      end
      found[key], count = value, count + 1
      return value
    end})
  end

  -- The end of a packed member is its state. There are many members and few states: what the rules make of a state is
  -- found once in a call, and such a member is not unpacked.
  local function in_state(state)
    return ring_rules.unpack(string.rep("\0", MEMBER_FRONT) .. state)
  end

  -- State -> has a member of full weight all its turns, and the interval of the lane?
  ring_rules.plain = found_once(function(state)
    local member = in_state(state)
    return member[MEMBER_SLOW] == 0 and ring_rules.has_all_turns(member, MOST_WEIGHT)
  end)

  -- State -> that after a good visit, where no member is held; false for one that was slowed.
  ring_rules.better = found_once(function(state)
    local member = in_state(state)
    if member[MEMBER_SLOW] > 0 then return false end
    improve(member, 1)
    return string.sub(ring_rules.pack(member), MEMBER_FRONT + 1)
  end)

  local function good(member, ring, rules)
    local lift = LIFT_NONE
    if ring[RING_TESTED] == member[MEMBER_ID] then
      lift, ring[RING_TESTED] = LIFT_ALL, ring_rules.not_tested
    elseif ring[RING_BLOCKED_AT] > 0 then
      lift, ring[RING_TESTED_SINCE], ring[RING_TESTED_BLOCKED_AT] = LIFT_ONE, ring[RING_SUSPECTED_AT], ring[RING_BLOCKED_AT]
    end
    local held = improve(member, rules[RULE_HOLD])
    weigh(ring, false)
    local place = place_of(member)
    return held and place == PLACE_TAIL and PLACE_HEAD or place, lift
  end

  local function slow_down(member, ring, rules, retry_after)
    member[MEMBER_SLOW], member[MEMBER_USES] = min(MOST_SLOW, member[MEMBER_SLOW] + SLOWER), 0
    local pause = max(retry_after, ring_rules.interval(member, ring_rules.wanted_interval(rules, ring)))
    member[MEMBER_DUE] = max(member[MEMBER_DUE], ceil_unit(now + pause))
    return place_of(member), LIFT_NONE
  end

  -- Where the member goes after a visit, and which quarantines end (Lift). Both arrays are changed.
  function ring_rules.returned(member, ring, result, rules, retry_after, chance)
    if result == RESULT_GOOD then return good(member, ring, rules) end
    if result == RESULT_BLOCKED then return ban(member, ring, rules, chance) end
    if result == RESULT_THROTTLED then return slow_down(member, ring, rules, retry_after) end
    if result == RESULT_UNCLEAR then
      member[MEMBER_QUALITY], member[MEMBER_USES] = max(1, member[MEMBER_QUALITY] - 1), 0
      return place_of(member), LIFT_NONE
    end
    if result == RESULT_FAULT then
      member[MEMBER_DUE] = max(member[MEMBER_DUE], ceil_unit(now + FIRST_DOWN * (1 + RING_JITTER * chance)))
      member[MEMBER_QUALITY] = member[MEMBER_QUALITY] - floor(member[MEMBER_QUALITY] / LEARN)
      member[MEMBER_USES] = 0
      return place_of(member), LIFT_NONE
    end
    return member[MEMBER_DUE] <= now + PARKED and PLACE_HEAD or PLACE_RESTING, LIFT_NONE
  end

  -- The ban was not its own; its interval stays. blocked_at: since when the site blocked us, if it did; bans after that
  -- counted no strike.
  function ring_rules.lift(member, wanted, blocked_at)
    if blocked_at == 0 or member[MEMBER_BANNED_AT] <= ceil(blocked_at) then
      member[MEMBER_STRIKES] = max(0, member[MEMBER_STRIKES] - 1)
    end
    local due = member[MEMBER_BANNED_AT] + ring_rules.interval(member, wanted)
    member[MEMBER_BANNED_AT], member[MEMBER_DUE], member[MEMBER_GOOD] = 0, ceil_unit(max(now, due)), 0
  end

  -- Can bans be the fault of a page? Only if others are answered.
  function ring_rules.may_lift(ring)
    return ring[RING_EVIDENCE] <= 0 and ring[RING_BLOCKED_AT] == 0
  end

  -- The longest interval per member of the jobs that use the lane. True if the ring has changed.
  function ring_rules.want_gap(ring, own)
    local gap, gap_at = ring[RING_GAP], ring[RING_GAP_AT]
    if own < gap and now <= gap_at + max(GAP_IN_FORCE, 2 * gap) then return false end
    if own == gap and (own == 0 or now < gap_at + 1) then return false end
    ring[RING_GAP], ring[RING_GAP_AT] = own, own > 0 and now or 0
    return true
  end

  -- How long a member with so many failures of its own in a row rests for all lanes.
  function ring_rules.down_for(faults, chance)
    if faults < FAULTS then return 0 end
    return min(LONGEST_DOWN, FIRST_DOWN * 2 ^ min(faults - FAULTS, DOWN_DOUBLINGS)) * (1 + RING_JITTER * chance)
  end

  return ring_rules
end

function proxy_ring()
  made = made or make()
  return made
end
