#!lua
-- End leases: outcome, children and lane feedback, atomically for each lease.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] this call's name
--   ARGV[4] msgpack: names of lanes, children (see admit.lua), their owners, texts and more values of the endings, true if
--   some leases or children have a chain, and true if the caller publishes     ARGV[5] endings (Ending in layouts.py)
--   returns one digit per ending: 1 applied, 0 stale; and a line per parcel to publish, as put.lua
--
--   P rejects    list  when, the record that failed validation, its page's parcel    P examples  hash  tally -> first URL
--
-- uses clock: call
-- uses job_books: sub byte max unpack_ P book many tally close_books
-- uses pace: allowed
-- uses lane_sharing: is_shared
-- uses adaptive_pace: learn
-- uses lane_pool: pool_of
-- uses pool_members: members
-- uses shared_lanes: SHARED HEEDS run
-- uses job_lanes: lanes half read_lane fetch load_lanes
-- uses ready_lanes: write_lanes
-- uses admit: admit
-- uses chains: chains
-- uses graves: leased_parts
-- uses worker_leases: HELD
-- uses outcomes: apply keep_rare

local GIVEN = 7
local worker, this_call = ARGV[2], ARGV[3]
local kept = call("HGET", P .. "calls", "s" .. worker)
if kept and sub(kept, 1, #this_call + 1) == this_call .. " " then
  -- A repeat after a lost reply: return the same answer.
  return sub(kept, #this_call + 2)
end

local names, children, owners, texts, mores, chained, mine = unpack(cmsgpack.unpack(ARGV[4]), 1, GIVEN)
local endings, tokens = ARGV[5], {}
local count = #endings / ENDING_BYTES
for i = 1, count do
  local at = ENDING_BYTES * (i - 1) + 1
  tokens[i] = sub(endings, at, at + ENDING_FINGERPRINT - 1)
end
local parcels = fetch(HELD .. worker, tokens)

-- A lease is valid if its token is held, belongs to this task, and appears for the first time.
local live, answers, ended, levels, starts, endeds = {}, {}, {}, {}, {}, 0
local known = {}
for i = 1, count do
  local parcel, token = parcels[i], tokens[i]
  if parcel and not known[token] then
    local level, lane, at = unpack_(PARCEL_FORM, parcel)
    local own, given = at + BLOB_FINGERPRINT - 1, ENDING_BYTES * (i - 1) + 1
    if sub(parcel, own, at + BLOB_COUNTS - 2) == sub(endings, given + ENDING_FINGERPRINT, given + ENDING_REST - 1) then
      known[token] = true
      endeds = endeds + 1
      ended[endeds] = token
      live[i], levels[i], starts[i] = lane, level, at
    end
  end
  answers[i] = live[i] and "1" or "0"
end

-- The prefix "+" of a kind: the visit knew robots.txt.
local WITH_ROBOTS = {}
for kind in string.gmatch(VERDICTS, "%l+") do WITH_ROBOTS["+" .. kind] = kind end

-- Fast path for successful visits in lanes with free places: no job waits for a place, and the job's part is not read.
local function load_needed()
  local some, asked, needed = {}, {}, {}
  for i = 1, count do
    local name = live[i]
    if name then
      if asked[name] == nil then
        some[#some + 1] = name
        asked[name] = false
      end
      if byte(endings, ENDING_BYTES * (i - 1) + 1 + ENDING_REST) ~= END_DONE then asked[name] = true end
    end
  end
  local shared = fetch(SHARED, some)
  for i = 1, #some do
    local name = some[i]
    local lane = read_lane(name, nil, shared[i])
    half[name] = true
    if asked[name] or lane[LEASED] >= allowed(lane, HEEDS) or lane[SINCE] > 0 or lane[TROUBLE] > 0 or is_shared(lane) then
      needed[#needed + 1] = name
    end
  end
  load_lanes(needed)
end

load_needed()

-- The lanes with a proxy pool.
local function load_proxied()
  local proxied = {}
  for name in pairs(lanes) do
    if pool_of(name) then proxied[#proxied + 1] = name end
  end
  if #proxied > 0 then members().read_evidence(proxied) end
  return #proxied > 0
end

local function blob_of(i)
  return (leased_parts(parcels[i], live[i], starts[i]))
end

-- What the lane itself learns of a visit through a member: a ban or a 429 is the member's, unless the site blocks us.
local function kind_for_lane(lane, kind, result)
  if result == RESULT_GOOD or result == RESULT_UNCLEAR or result == RESULT_UNUSED then return kind end
  if result ~= RESULT_FAULT and members().site_blocked(lane[NAME]) then
    lane[FAILURES] = max(lane[FAILURES], BREAKER - 1)
    return "blocked"
  end
  return kind and "refused"
end

local is_proxied = load_proxied()
local done, failed = 0, 0

-- A lease that ended otherwise than well, or has more to tell, or went out through a member.
local function settle_more(i, lane, outcome, tallied, kind, result, took, more)
  if outcome ~= END_DONE then
    if outcome == END_RETRY or outcome == END_BURY then failed = failed + 1 end
    apply(outcome, lane, levels[i], blob_of(i), more, tallied, names)
  end
  local rest, interval, chance = 0, 0, 0
  if more then
    rest, interval, chance = more[MORE_REST], more[MORE_INTERVAL], more[MORE_CHANCE]
    local counted = more[MORE_TALLIES]
    for k = 1, #counted, 2 do tally(counted[k], counted[k + 1]) end
    if more[MORE_EXAMPLES] then
      keep_rare(more[MORE_EXAMPLES], more[MORE_REJECTS], sub(parcels[i], 1, starts[i] - 1) .. blob_of(i))
    end
  end
  local verdict = WITH_ROBOTS[kind] or kind
  if is_proxied and pool_of(lane[NAME]) then
    local member = sub(parcels[i], -MEMBER_BYTES)
    members().come_back(lane[NAME], member, result or RESULT_UNUSED, rest, chance, more and more[MORE_LIFT])
    verdict = kind_for_lane(lane, verdict, result or RESULT_UNUSED)
  end
  if verdict then learn(lane, verdict, took, rest, interval, chance, WITH_ROBOTS[kind]) end
end

-- Leases of a lane, and those with the same counter, mostly come together: they are counted together.
local function settle_all()
  local lane, runs, counter, times = nil, 0, 0, 0
  local via, pool, group
  if is_proxied then group = members() end
  for i = 1, count do
    local name = live[i]
    if name then
      local outcome, tallied, kind, result, took, more =
        unpack_(ENDING_FORM, endings, ENDING_BYTES * (i - 1) + 1 + ENDING_REST)
      if not lane or lane[NAME] ~= name then
        if lane then run(lane, -runs) end
        lane, runs = lanes[name], 0
        via = is_proxied and pool_of(name)
        pool = via and group.pool_named(via)
      end
      runs = runs + 1
      if outcome == END_DONE then
        done = done + 1
        if tallied ~= counter then
          if times > 0 then tally(texts[counter], times) end
          counter, times = tallied, 0
        end
        times = times + 1
        if chained then chains().done(blob_of(i)) end
      end
      kind = texts[kind]
      if outcome == END_DONE and kind == "ok" and more == 0
        and (not via or (texts[result] == RESULT_GOOD and group.is_plainly_back(name, pool, parcels[i]))) then
        learn(lane, kind, took, 0, 0, 0, nil)
      else
        settle_more(i, lane, outcome, texts[tallied], kind, texts[result], took, mores[more])
      end
    end
  end
  if lane then run(lane, -runs) end
  if times > 0 then tally(texts[counter], times) end
end

settle_all()

local letters, made = table.concat(answers), ""
if endeds > 0 then
  book.leased = book.leased - endeds
  book.done = book.done + done
  book.ended = book.ended + done
  many("HDEL", HELD .. worker, ended)
  if done > 0 then call("HINCRBY", P .. "figures", "d" .. worker, done) end
  if failed > 0 then call("HINCRBY", P .. "figures", "f" .. worker, failed) end
  if #children > 0 then
    local _
    _, made = admit(names, children, chained, "s" .. this_call, mine, owners, live)
  end
  if is_proxied then load_lanes(members().served_sooner()) end
  write_lanes()
  close_books()
  call("HSET", P .. "calls", "s" .. worker, this_call .. " " .. letters)
end
return letters .. made
