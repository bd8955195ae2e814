-- The members of a proxy pool that the next visits of a lane go out through: a lease takes them from the lane's ring.
--
-- A member stays packed, unless the rules or the pool have something to say of it.
--
-- part of pool_members
-- uses clock: now
-- uses job_counters: sub max pack_ unpack_
-- uses lane_pool: pool_of
-- uses account_locks: account_locks
-- uses proxy_ring: proxy_ring
-- uses proxy_pools: pool_named deal_members
-- uses block_evidence: all_calm evidence_of
-- uses member_limits: member_chance look_up held_up count_start
-- uses ring_store: open_rings keep_ring ring_of change_ring put_at_head pop_members first_of
-- uses ring_moves: put_member end_rests set_aside follow_changes
-- exports: begin_taking take_members put_back_members send_out

-- Of one call and lane: members looked at beyond those wanted.
local LOOKS = 32
-- What the pool knows of a member that is not in it (KNOWN_FORM); and the end of that of most members, behind the number.
local no_member, full_weight -- once
-- Members that were popped, and have to be looked at.
local popped
-- What a lease takes, TAKEN in lua_layouts.py: one array for all lanes. And parts of new members.
local taken = {} -- once
local plain, new_rest, new_state -- once

function begin_taking()
  if not plain then
    local rules = proxy_ring()
    plain, new_rest = rules.plain, rules.new_rest
    new_state = sub(new_rest, MEMBER_FRONT - MEMBER_NAME + 1)
    no_member, full_weight = pack_(KNOWN_FORM, 0, 0), string.char(MOST_WEIGHT)
  end
end

-- Up to so many that the lane never had, and the number of the last of them.
local function deal_plainly(name, pool, dealt, wanted)
  local count, last = deal_members(name, pool, dealt, wanted, taken, 0)
  for i = count, 1, -1 do
    local at = TAKEN_SIZE * (i - 1) + 1
    taken[at], taken[at + TAKEN_DUE], taken[at + TAKEN_STATE] = taken[i], 0, new_state
  end
  return count, last
end

-- So many of these packed members, if all of them may go out as they are.
local function take_first(packed, wanted, latest)
  local filled_at = 0
  for at = 1, wanted * MEMBER_BYTES, MEMBER_BYTES do
    local front, due, state = unpack_(MEMBER_PARTS_FORM, packed, at)
    if not plain[state] or due > latest then return false end
    taken[filled_at + 1], taken[filled_at + 2], taken[filled_at + TAKEN_SIZE] = front, due, state
    filled_at = filled_at + TAKEN_SIZE
  end
  return true
end

-- The next members of a ring which has had all members of its pool. How many: 0 if they have to be looked at.
local function take_used(name, wanted, latest)
  local packed = pop_members(name, wanted)
  local size = wanted * MEMBER_BYTES
  if #packed >= size and take_first(packed, wanted, latest) then
    if #packed > size then put_at_head(name, sub(packed, size + 1)) end
    return wanted
  end
  popped = packed ~= "" and packed or nil
  return 0
end

-- The same for a lane of which more is known, as long as that does not matter now.
local function take_known(name, pool, packed, wanted, latest, own_gap)
  if #packed ~= RING_BYTES then return 0 end
  local dealt, changes, first_rest, gap, gap_at = unpack_(RING_FORM, packed)
  if changes ~= pool.changes or (first_rest > 0 and first_rest <= now) or gap ~= own_gap
    or (gap > 0 and now >= gap_at + 1) then
    return 0
  end
  if dealt >= pool.last then return take_used(name, wanted, latest) end
  local count, last = deal_plainly(name, pool, dealt, wanted)
  keep_ring(name, pack_(RING_FORM, last, changes, first_rest, gap, gap_at))
  return count
end

-- For a lane of which no more of the ring has to be known: nothing has changed or come back, and nothing is known of its
-- site. How many were taken: 0 if it is not such a lane. latest: in units.
local function take_plainly(name, pool, packed, wanted, latest, own_gap)
  if not pool.plain or not all_calm and (open_rings[name] or evidence_of(name)) then return 0 end
  if packed == pool.calm_ring and own_gap == 0 then return take_used(name, wanted, latest) end
  if packed and #packed ~= CALM_RING_BYTES then return take_known(name, pool, packed, wanted, latest, own_gap) end
  local dealt, changes = 0, pool.changes
  if packed then dealt, changes = unpack_(CALM_RING_FORM, packed) end
  if changes ~= pool.changes or own_gap > 0 then return 0 end
  local count, last = deal_plainly(name, pool, dealt, wanted)
  keep_ring(name, pack_(CALM_RING_FORM, last, changes))
  return count
end

-- Up to so many, or some more, packed, and how many of them may be taken. One that is held goes on; then those that the
-- lane never had are dealt before others have their second turn.
local function next_members(name, pool, ring, count)
  if ring[RING_DEALT] < pool.last then
    local first = not pool.rotates and first_of(name)
    if first and first[MEMBER_USES] > 0 then
      count = 1
    else
      local fronts, dealt = {}, nil
      dealt, ring[RING_DEALT] = deal_members(name, pool, ring[RING_DEALT], count, fronts, 0)
      change_ring(name)
      if dealt > 0 then return table.concat(fronts, new_rest) .. new_rest, count end
    end
  end
  return pop_members(name, count), count
end

-- Take so many members of the ring, or put them where they belong; had: so many were taken before. How many are taken now,
-- how many were looked at, and whether one is due too late, and so those behind it. Those that lose their turn go into
-- `passed`.
local function choose(name, pool, ring, packed, had, most, latest, passed)
  local known, faults, loads, locks
  if not pool.plain then known, faults, loads, locks = look_up(pool, packed) end
  local at, filled_at, i, upto = 1, TAKEN_SIZE * had, 0, TAKEN_SIZE * most
  local is_late = false
  while at <= #packed and filled_at < upto and not is_late do
    local front, due, state = unpack_(MEMBER_PARTS_FORM, packed, at)
    i = i + 1
    if plain[state] and due / UNITS <= latest and (not known or known[i] == sub(front, MEMBER_ID_BYTES + 1) .. full_weight)
      and not loads and not (faults and faults[i]) then
      -- Nearly all of them: nothing else has to be known.
      taken[filled_at + 1], taken[filled_at + 2], taken[filled_at + TAKEN_SIZE] = front, due, state
      filled_at = filled_at + TAKEN_SIZE
    else
      local member, weight, busy = proxy_ring().unpack(packed, at), MOST_WEIGHT, nil
      local number = member[MEMBER_ADDED]
      if known then number, weight = unpack_(KNOWN_FORM, known[i] or no_member) end
      if faults or loads then
        busy = held_up(name, pool, member, faults and faults[i], loads and loads[i], locks and locks[i], latest)
      end
      if number ~= member[MEMBER_ADDED] then
        set_aside(name, pool, ring, member)
      elseif busy then
        member[MEMBER_DUE] = max(member[MEMBER_DUE], proxy_ring().ceil_unit(busy))
        put_member(name, ring, member, PLACE_RESTING)
      elseif member[MEMBER_DUE] > latest then
        is_late = true
      elseif not proxy_ring().has_all_turns(member, weight) and proxy_ring().loses_turn(member, weight, member_chance()) then
        passed[#passed + 1] = member
      else
        taken[filled_at + 1], taken[filled_at + 2], taken[filled_at + TAKEN_SIZE] = member, false, false
        filled_at = filled_at + TAKEN_SIZE
      end
    end
    if not is_late then at = at + MEMBER_BYTES end
  end
  if at <= #packed then put_at_head(name, sub(packed, at)) end
  return filled_at / TAKEN_SIZE, i, is_late
end

-- The rest of them, from a ring that has to be looked at. had: so many were taken before.
local function take_more(name, pool, ring, wanted, latest, had)
  local passed, looks, is_late = {}, had, false
  while had < wanted and looks < wanted + LOOKS and not is_late do
    local some, most = popped, wanted - had
    popped = nil
    if not some then some, most = next_members(name, pool, ring, most) end
    if some == "" then break end
    local looked
    had, looked, is_late = choose(name, pool, ring, some, had, had + most, latest, passed)
    looks = looks + looked
  end
  local interval = proxy_ring().wanted_interval(pool.rules, ring)
  for i = 1, #passed do
    -- A turn is lost to others only.
    if had < wanted then
      local at = TAKEN_SIZE * had
      taken[at + 1], taken[at + 2], taken[at + TAKEN_SIZE] = passed[i], false, false
      had = had + 1
    else
      put_member(name, ring, passed[i], proxy_ring().pass_over(passed[i], interval))
    end
  end
  return had, interval
end

-- Up to so many members that may start until the latest moment: three values for each, its id and number, due time and
-- state; or the member itself, false and false. They are out of the ring: `send_out` or `put_back_members`. How many, and the
-- interval of the lane through one member. packed: its ring, from `read_rings`.
function take_members(name, pool, wanted, latest, own_gap, packed)
  if not pool then return taken, 0, 0 end
  local had = take_plainly(name, pool, packed, wanted, latest * UNITS, own_gap)
  if had == wanted then return taken, had, own_gap > pool.interval and own_gap or pool.interval end
  local ring, interval = ring_of(name), nil
  if (own_gap > 0 or ring[RING_GAP] > 0) and proxy_ring().want_gap(ring, own_gap) then change_ring(name) end
  if ring[RING_CHANGES] ~= pool.changes then follow_changes(name, pool, ring) end
  if ring[RING_FIRST_REST] > 0 and ring[RING_FIRST_REST] <= now then end_rests(name, pool, ring) end
  had, interval = take_more(name, pool, ring, wanted, latest, had)
  return taken, had, interval
end

-- Members that were taken and are not needed, as they were: those from this one on.
function put_back_members(name, from, upto)
  local packed = {}
  for i = from, upto do
    local front, due, state = unpack(taken, TAKEN_SIZE * (i - 1) + 1, TAKEN_SIZE * i)
    packed[#packed + 1] = due and pack_(MEMBER_PARTS_FORM, front, due, state) or proxy_ring().pack(front)
  end
  put_at_head(name, table.concat(packed))
end

-- The member goes out with this lease, at this moment or as soon as it is due: the start, its id and number, and the
-- rest of what is kept of it until it is back.
function send_out(name, member, start, wanted, token)
  start = max(start, member[MEMBER_DUE], member.next_start or 0)
  member[MEMBER_DUE] = proxy_ring().ceil_unit(start + proxy_ring().interval(member, wanted))
  if member.visits then
    local pool = pool_named(pool_of(name))
    count_start(pool, member, start)
    if pool.accounts then account_locks().lock(pool.name, name, member[MEMBER_ID], token) end
  end
  local packed = proxy_ring().pack(member)
  return start, sub(packed, 1, MEMBER_NAME), sub(packed, MEMBER_NAME + 1)
end
