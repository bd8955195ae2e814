#!lua
-- End leases: outcome, children and lane feedback, atomically for each lease.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] this call's name
--   ARGV[4] msgpack: names of lanes, the number of those with leases that end, children (see admit.lua), their owners, texts
--   and more values of the endings, true if some leases or children have a chain, and true if the caller publishes
--   ARGV[5] the leases that end, lane by lane, in runs (EndingRun in lua_layouts.py). For each lease: ARGV[6] token (6 bytes),
--   ARGV[7] fingerprint (8 bytes), ARGV[8] how long its visit took (double). No lease is there twice
--   returns one digit per lease: 1 applied, 0 stale; and a line per parcel to publish, as put.lua
--
--   P rejects    list  when, the record that failed validation, its page's parcel    P examples  hash  tally -> first URL
--
-- uses clock: call
-- uses job_counters: sub max unpack_ P book many tally close_books
-- uses pace: allowed
-- uses lane_sharing: is_shared
-- uses adaptive_pace: learn
-- uses lane_pool: pool_of
-- uses pool_members: members is_plainly_back
-- uses shared_lanes: SHARED HEEDS run
-- uses calm_lanes: settle_calmly write_calm_lanes
-- uses job_lanes: lanes half read_lane fetch load_lanes
-- uses ready_lanes: write_lanes
-- uses admit: admit
-- uses chains: chains
-- uses dequeued_tasks: leased_parts
-- uses worker_leases: HELD
-- uses outcomes: apply keep_rare

local GIVEN = 8
local worker, this_call = ARGV[2], ARGV[3]
local kept = call("HGET", P .. "calls", "s" .. worker)
if kept and sub(kept, 1, #this_call + 1) == this_call .. " " then
  -- A repeat after a lost reply: return the same answer.
  return sub(kept, #this_call + 2)
end

local names, settled, children, owners, texts, mores, chained, mine = unpack(cmsgpack.unpack(ARGV[4]), 1, GIVEN)
local runs, count = ARGV[5], #ARGV[6] / TOKEN_BYTES

-- A value of each lease.
local function column(form, packed)
  local values = {unpack_("<" .. string.rep(form, count), packed)}
  values[count + 1] = nil
  return values
end

local tokens, prints, tooks = column("c6", ARGV[6]), column("c8", ARGV[7]), column("d", ARGV[8])
local parcels = fetch(HELD .. worker, tokens)
local shared = settled > 0 and call("HMGET", SHARED, unpack(names, 1, settled)) or {}

-- Of leases that the worker does not hold, or of another task.
local refused, stale = {}, 0

-- The lane of these leases, and how many of them are valid. The client has put together what it holds of one lane.
local function check(first, last)
  local name, from, upto
  local before = stale
  for i = first, last do
    local parcel = parcels[i]
    if parcel and not from then
      local _, lane, at = unpack_(PARCEL_FORM, parcel)
      name, from, upto = lane, at + BLOB_FINGERPRINT - 1, at + BLOB_COUNTS - 2
    end
    if not parcel or sub(parcel, from, upto) ~= prints[i] then refused[i], stale = true, stale + 1 end
  end
  return name, last - first + 1 - stale + before
end

local done, failed = 0, 0
-- Runs that change more of their lane than its visits, with the lane's string and their first lease.
local others = {}

-- Have some of the lanes a proxy pool?
local is_proxied = false

-- Members of good visits, which change nothing else of their lane than other good visits.
local function send_back(name, via, first, last)
  local group = members()
  local pool = group.pool_named(via)
  for i = first, last do
    if not is_plainly_back(name, pool, parcels[i]) then
      group.come_back(name, sub(parcels[i], -MEMBER_BYTES), RESULT_GOOD, 0, 0)
    end
  end
  is_proxied = true
end

-- Nearly all visits end well, and nearly all lanes are calm: those are done with here.
local function settle_runs()
  local first = 1
  for at = 1, #runs, RUN_BYTES do
    local number, size, outcome, is_only, tallied, kind, result, more = unpack_(RUN_FORM, runs, at)
    local name, live = check(first, first + size - 1)
    if live > 0 then
      if outcome == END_DONE then
        done = done + live
        tally(texts[tallied], live)
      end
      local packed = name == names[number] and shared[number]
      local via = packed and pool_of(name)
      if packed and outcome == END_DONE and is_only == 1 and live == size and not chained
        and (not via or texts[result] == RESULT_GOOD)
        and settle_calmly(name, packed, texts[kind], tooks, first, size, mores, more) then
        if via then send_back(name, via, first, first + size - 1) end
      else
        others[#others + 1] = {name = name, packed = packed, first = first, at = at}
      end
    end
    first = first + size
  end
end

settle_runs()

-- Where all visits ended well and there are free places, no job waits for a place, and the job's part is not read.
-- Returns whether some of the lanes have a proxy pool.
local function load_others()
  local unread, is_needed, needed, some = {}, {}, {}, {}
  for i = 1, #others do
    local name, packed = others[i].name, others[i].packed
    local _, _, outcome = unpack_(RUN_FORM, runs, others[i].at)
    if is_needed[name] == nil then
      some[#some + 1], is_needed[name] = name, false
      if packed then
        read_lane(name, nil, packed)
        half[name] = true
      else
        unread[#unread + 1] = name
      end
    end
    if outcome ~= END_DONE then is_needed[name] = true end
  end
  load_lanes(unread)
  for i = 1, #some do
    local name = some[i]
    local lane = lanes[name]
    if is_needed[name] or lane[LEASED] >= allowed(lane, HEEDS) or lane[SINCE] > 0 or lane[TROUBLE] > 0
      or is_shared(lane) then
      needed[#needed + 1] = name
    end
  end
  load_lanes(needed)
  local proxied = {}
  for i = 1, #some do
    if pool_of(some[i]) then
      if members().is_all_calm() then return true end
      proxied[#proxied + 1] = some[i]
    end
  end
  if #proxied > 0 then members().read_evidence(proxied) end
  return #proxied > 0
end

is_proxied = load_others() or is_proxied

-- What the lane itself learns of a visit through a member: a ban or a 429 is the member's, unless the site blocks us.
local function kind_for_lane(lane, kind, result)
  if result == RESULT_GOOD or result == RESULT_UNCLEAR or result == RESULT_UNUSED then return kind end
  if result ~= RESULT_FAULT and members().site_blocked(lane[NAME]) then
    lane[FAILURES] = max(lane[FAILURES], BREAKER - 1)
    return "blocked"
  end
  return kind and "refused"
end

-- What becomes of the task, and what is kept of its page.
local function end_task(parcel, lane, outcome, tallied, more)
  local level, _, start = unpack_(PARCEL_FORM, parcel)
  local blob = leased_parts(parcel, lane[NAME], start)
  if outcome ~= END_DONE then
    if outcome == END_RETRY or outcome == END_BURY then failed = failed + 1 end
    apply(outcome, lane, level, blob, more, tallied, names)
  elseif chained then
    chains().done(blob)
  end
  if more and more[MORE_EXAMPLES] then
    keep_rare(more[MORE_EXAMPLES], more[MORE_REJECTS], sub(parcel, 1, start - 1) .. blob)
  end
end

-- A lease that ended otherwise than well, or has more to tell, or went out through a member. robots: the visit knew robots.txt.
local function settle_more(parcel, lane, outcome, tallied, kind, robots, result, took, more)
  if outcome ~= END_DONE or chained or (more and more[MORE_EXAMPLES]) then
    end_task(parcel, lane, outcome, tallied, more)
  end
  local rest, interval, chance = 0, 0, 0
  if more then
    rest, interval, chance = more[MORE_REST], more[MORE_INTERVAL], more[MORE_CHANCE]
    local counted = more[MORE_TALLIES]
    for k = 1, #counted, 2 do tally(counted[k], counted[k + 1]) end
  end
  if is_proxied and pool_of(lane[NAME]) then
    local member = sub(parcel, -MEMBER_BYTES)
    members().come_back(lane[NAME], member, result or RESULT_UNUSED, rest, chance, more and more[MORE_LIFT])
    kind = kind_for_lane(lane, kind, result or RESULT_UNUSED)
  end
  if kind then learn(lane, kind, took, rest, interval, chance, robots) end
end

local function settle_others()
  -- After all that is read of leases and lanes, and before a task that moves may look at one of them again.
  write_calm_lanes()
  local via, pool, pool_name
  for k = 1, #others do
    local name, first = others[k].name, others[k].first
    local _, size, outcome, _, tallied, kind, result, more = unpack_(RUN_FORM, runs, others[k].at)
    local lane, live = lanes[name], 0
    via = is_proxied and pool_of(name)
    if via and via ~= pool_name then pool, pool_name = members().pool_named(via), via end
    tallied, kind, result = texts[tallied], texts[kind], texts[result]
    -- The prefix "+" of a kind: the visit knew robots.txt.
    local robots = kind and sub(kind, 1, 1) == "+"
    if robots then kind = sub(kind, 2) end
    local is_plain = outcome == END_DONE and kind == "ok" and not robots and more == 0 and not chained
      and (not via or result == RESULT_GOOD)
    for i = first, first + size - 1 do
      if not refused[i] then
        live = live + 1
        if is_plain and (not via or is_plainly_back(name, pool, parcels[i])) then
          learn(lane, kind, tooks[i], 0, 0, 0, nil)
        else
          settle_more(parcels[i], lane, outcome, tallied, kind, robots, result, tooks[i], more > 0 and mores[more + i - first])
        end
      end
    end
    run(lane, -live)
  end
end

settle_others()

-- A digit for each lease, and the tokens of those that ended.
local function answers()
  if stale == 0 then return string.rep("1", count), tokens end
  local digits, ended = {}, {}
  for i = 1, count do
    digits[i] = refused[i] and "0" or "1"
    if not refused[i] then ended[#ended + 1] = tokens[i] end
  end
  return table.concat(digits), ended
end

-- Writes what has changed, and returns the reply.
local function finish()
  local digits, ended = answers()
  local made = ""
  if stale < count then
    book.leased = book.leased - count + stale
    book.done = book.done + done
    book.ended = book.ended + done
    many("HDEL", HELD .. worker, ended)
    if done > 0 then call("HINCRBY", P .. "figures", "d" .. worker, done) end
    if failed > 0 then call("HINCRBY", P .. "figures", "f" .. worker, failed) end
    if #children > 0 then
      local _
      _, made = admit(names, children, chained, "s" .. this_call, mine, owners, refused)
    end
    if is_proxied then
      -- Their rings were empty: they may be served sooner than they are queued for. Those that were settled calmly are not open.
      local sooner = members().served_sooner()
      load_lanes(sooner)
      for i = 1, #sooner do run(lanes[sooner[i]], 0) end
    end
    write_lanes()
    close_books()
    call("HSET", P .. "calls", "s" .. worker, this_call .. " " .. digits)
  end
  return digits .. made
end

return finish()
