-- Leases tasks from ready lanes, in turns. Part of lease.lua, whose arguments it reads.
--
-- uses clock: call now
-- uses job_counters: sub floor ceil max min pack_ unpack_ book
-- uses pace: reserve given_up forgive credit spend
-- uses lane_sharing: is_shared claim yields_until portion
-- uses shared_lanes: SHARED SPLIT change HEEDS bounds_of run postpone
-- uses job_lanes: LANES lanes not_before more_of read_lane fetch touch
-- uses priority_levels: find_level close_level queue has_waiting
-- uses route_queues: queue_of
-- uses pool_members: members
-- uses ready_lanes: popped popped_at line_key levels_key probes_first_attempts line_up write_lines
-- uses dequeued_tasks: wrap
-- uses graveyard: bury_waiting
-- uses lease_times: add_starts
-- exports: limit shards shard served reply held high_water serve_level

local MOST = 1000
local QUANTUM, LARGE, TOGETHER = 8, 32, 0.1
local BURIED = 500
-- A lane that cannot be served, or was served, is not queued again in this call.
local SOON = 0.001

limit, shards, shard = min(tonumber(ARGV[3]), MOST), tonumber(ARGV[8]), tonumber(ARGV[9])
local share, patience = tonumber(ARGV[6]), tonumber(ARGV[7])
reply, held, served = {0, -1, 0, 0, false, 0, ""}, {}, 0
-- Above it what came last goes first: a site is then read branch by branch, and what waits grows with its depth and not
-- with its breadth.
high_water = HIGH_WATER

-- Ids and numbers of the members of a lane's turn. And when the last member that went out is due, in units, and packed.
local fronts = {} -- once
local last_due, packed_due

-- How far apart the starts of one lane's turn may be. More would wait with the worker while other lanes could run, fewer
-- cost the server more, and the worker a connection for every page. Who asks for many has room for those that wait.
local together = limit >= LARGE and HORIZON or TOGETHER

local number_texts = {} -- once

-- A whole number up to 1,000 as an argument of a command: as a number it would be printed anew each time, like a fraction.
local function text_of(number)
  local text = number_texts[number]
  if not text then
    text = string.format("%d", number)
    number_texts[number] = text
  end
  return text
end

-- The next start.
local function hand_out_directly(lane, head, token, blobs, start)
  local interval, at, count, place = lane[INTERVAL], #reply + 2, #blobs, 2 * served
  add_starts(token + shards, count, start, interval)
  -- Whole micro- and nanoseconds: a reply has no fractions.
  reply[at - 1], reply[at] = (start - now) * 1e6 + 0.5, interval * 1e9 + 0.5
  for i = 1, count do
    local blob = blobs[i]
    token = token + shards
    reply[at + i] = blob
    held[place + 1], held[place + 2] = pack_(TOKEN_FORM, token), head .. blob
    place = place + 2
  end
  return start + count * interval
end

-- The same through members of a proxy pool (`take` in pool_members.lua). The worker gets them in front of the tasks.
local function hand_out_through(lane, head, token, blobs, start, taken, wanted)
  local name, interval, at, count = lane[NAME], lane[INTERVAL], #reply + 1, #blobs
  local first_token, first, is_even, members_at, taken_at = token + shards, start, true, at, 1
  reply[members_at] = ""
  for i = 1, count do
    local blob, place = blobs[i], 2 * (served + i)
    local front, due, rest = taken[taken_at], taken[taken_at + TAKEN_DUE], taken[taken_at + TAKEN_STATE]
    token = token + shards
    local field, before = pack_(TOKEN_FORM, token), start
    if due then
      if due > start * UNITS then start = due / UNITS end
      local units = (start + wanted) * UNITS
      -- Lanes that may start now have the same. The next whole number, without a call.
      if units ~= last_due then last_due, packed_due = units, pack_("<I5", units + -units % 1) end
      held[place] = head .. blob .. front .. packed_due .. rest
    else
      start, front, rest = members().go_out(name, front, start, wanted, field)
      held[place] = head .. blob .. front .. rest
    end
    if start ~= before then
      -- Starts so far were an interval apart.
      if is_even and i > 1 then add_starts(first_token, i - 1, first, interval) end
      is_even = false
    end
    if not is_even then add_starts(token, 1, start, 0) end
    fronts[i], held[place - 1] = front, field
    reply[at + 1], reply[at + 2] = (start - now) * 1e6 + 0.5, blob
    at, taken_at = at + 2, taken_at + TAKEN_SIZE
    start = start + interval
  end
  if is_even then add_starts(first_token, count, first, interval) end
  local all = count == 1 and fronts[1] or table.concat(fronts, "", 1, count)
  reply[members_at] = members().site_blocked(name) and all .. "!" or all
  return start
end

local function hand_out(lane, level, blobs, start, taken, wanted)
  local head, at, count = wrap(lane[NAME], level), #reply, #blobs
  local token = (book.leases + served) * shards + shard
  reply[at + 1], reply[at + 2] = lane[NAME], count
  if taken then
    lane[NEXT] = hand_out_through(lane, head, token, blobs, start, taken, wanted)
  else
    lane[NEXT] = hand_out_directly(lane, head, token, blobs, start)
  end
  served = served + count
  run(lane, count)
  local claims, mine = lane[CLAIMS], lane[MINE]
  claims[mine + CLAIM_USED], claims[mine + CLAIM_WANTS] = now, 0
end

local function pop(key, count)
  local command = book.waiting - served > high_water and "RPOP" or "LPOP"
  if count == 1 then return {call(command, key) or nil} end
  return call(command, key, text_of(count)) or {}
end

-- The lane is given up: bury some of its waiting tasks.
local function give_up(lane, why)
  bury_waiting(lane, why, BURIED)
  if not has_waiting(lane) then
    forgive(lane)
    change(lane)
  end
  not_before[lane] = now + SOON
end

-- Up to so many tasks of one level of a lane.
-- group, pool, ring: of a lane with a proxy pool (pool_members.lua).
local function serve(lane, at, wanted, group, pool, ring)
  local hopeless = lane[SINCE] > 0 and given_up(lane, patience)
  if hopeless then return give_up(lane, hopeless) end
  local bounds = bounds_of(lane[NAME])
  claim(lane, bounds)
  change(lane)
  local meets = is_shared(lane)
  local other = meets and yields_until(lane) or 0
  local places, start = 0, 0
  if other == 0 then places, start = reserve(lane, portion(lane, wanted), HEEDS) end
  local level = lane[at]
  local retry = level % 2 == 1
  if retry then places = probes_first_attempts(lane, queue_of(level)) and 0 or min(places, floor(credit(lane))) end
  if places <= 0 then
    not_before[lane] = max(now + SOON, other)
    return
  end
  local taken, wanted_apart
  if group then
    taken, places, wanted_apart = group.take(lane[NAME], pool, places, now + HORIZON, bounds[BOUND_GAP], ring)
    if places == 0 then
      not_before[lane] = now + SOON
      return
    end
  end
  local key = queue(lane, level)
  local blobs = pop(key, places)
  local count = #blobs
  if taken and count < places then group.put_back(lane[NAME], count + 1, places) end
  if count < places or call("LLEN", key) == 0 then close_level(lane, at) end
  if count == 0 then return end
  hand_out(lane, level, blobs, start, taken, wanted_apart)
  if meets then
    postpone(lane)
    -- One turn a call: others may come in between.
    not_before[lane] = now + SOON
  end
  if retry then spend(lane, 0, count, share) else spend(lane, count, 0, share) end
end

-- Maximum tasks of a lane per turn while other lanes are ready.
local function turn_size(lane)
  local interval = lane[INTERVAL]
  if interval * (QUANTUM - 1) <= together then return QUANTUM end
  return 1 + floor(together / interval)
end

local visited = 0

-- Lanes that stand in line at a level share what is left of the batch.
function serve_level(level, pool)
  -- As many lanes as will be needed, by what those before them gave: one that is popped and not needed would have to be
  -- put back.
  local wanted = ceil((limit - served) / max(1, visited > 0 and served / visited or QUANTUM))
  local line = call("LPOP", line_key(level, pool), text_of(wanted))
  if not line then
    call("ZREM", levels_key(pool), level)
    return
  end
  local names, stamps, count = {}, {}, #line
  for i = 1, count do
    local stamp, at = unpack_("<I4", line[i])
    names[i], stamps[i] = sub(line[i], at), stamp
  end
  local own, shared = fetch(LANES, names), fetch(SHARED, names)
  local group, rings, registered
  if pool then
    group = members()
    rings, registered = group.read_rings(names), group.pool_named(pool)
  end
  popped, popped_at, visited = {}, level, visited + count
  for i = 1, count do
    local name = names[i]
    local lane = lanes[name] or own[i] and read_lane(name, own[i], shared[i])
    local at = lane and find_level(lane, level)
    if at and lane[at + STAMP] == stamps[i] then
      local wake, levels = lane[WAKE], lane[LEVELS]
      lane[at + STAMP], popped[lane] = 0, line[i]
      -- Other queues of the lane may be queued for later.
      if not SPLIT then lane[WAKE] = 0 end
      if lane[STATE] ~= PAUSED then
        local left, after = limit - served, count - i
        local most = after == 0 and left or ceil(left / (after + 1))
        if count == wanted and most > 1 then most = min(most, turn_size(lane)) end
        serve(lane, at, most, group, registered, group and rings[i])
      end
      line_up(lane)
      -- One that stands in line as before is the same string.
      if lane[at + STAMP] ~= stamps[i] or lane[WAKE] ~= wake or lane[LEVELS] ~= levels or more_of[lane] then touch(lane) end
    end
  end
  popped = {}
  write_lines()
end
