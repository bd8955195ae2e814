#!lua
-- End leases: outcome, children and lane feedback, atomically for each lease.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] this call's name
--   ARGV[4] msgpack: names of lanes, children (see admit.lua), their owners, endings (Ending in layouts.py), number,
--   true if some leases or children have a chain, and true if the caller publishes
--   returns one digit per ending: 1 applied, 0 stale; and a line per parcel to publish, as put.lua
--
--   P rejects    list  when, the record that failed validation, its page's parcel    P examples  hash  tally -> first URL
--
-- uses clock: call
-- uses job_books: sub find max unpack_ P book many tally close_books
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

local worker, this_call = ARGV[2], ARGV[3]
local kept = call("HGET", P .. "calls", "s" .. worker)
if kept and sub(kept, 1, #this_call + 1) == this_call .. " " then
  -- A repeat after a lost reply: return the same answer.
  return sub(kept, #this_call + 2)
end

local names, children, owners, endings, count, chained, mine = unpack(cmsgpack.unpack(ARGV[4]), 1, 7)

local tokens = {}
for i = 1, count do tokens[i] = endings[ENDING_SIZE * (i - 1) + 1 + ENDING_TOKEN] end
local parcels = fetch(HELD .. worker, tokens)

-- A lease is valid if its token is held, belongs to this task, and appears for the first time.
local live, answers, ended, levels, starts, endeds = {}, {}, {}, {}, {}, 0
local known = {}
for i = 1, count do
  local parcel, token = parcels[i], tokens[i]
  if parcel and not known[token] then
    local level, lane, at = unpack_(PARCEL_FORM, parcel)
    local own = at + BLOB_FINGERPRINT - 1
    if find(parcel, endings[ENDING_SIZE * (i - 1) + 1 + ENDING_FINGERPRINT], own, true) == own then
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
      if endings[ENDING_SIZE * (i - 1) + 1 + ENDING_OUTCOME] ~= END_DONE then asked[name] = true end
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

-- The members that leases went out through, and the rings of their lanes.
local function load_out()
  local found, proxied, listed = {}, {}, {}
  for i = 1, count do
    local name = live[i]
    if name and pool_of(name) then
      found[i] = sub(parcels[i], -MEMBER_BYTES)
      if not listed[name] then
        listed[name] = true
        proxied[#proxied + 1] = name
      end
    end
  end
  if #proxied > 0 then members().read_rings(proxied) end
  return found
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

local out = load_out()
local done, failed = 0, 0

local function settle_one(i, name)
  local at = ENDING_SIZE * (i - 1) + 1
  local lane = lanes[name]
  local outcome, kind, more = endings[at + ENDING_OUTCOME], endings[at + ENDING_KIND], endings[at + ENDING_MORE]
  run(lane, -1)
  if outcome == END_DONE then
    done = done + 1
    tally(endings[at + ENDING_TALLY], 1)
    if chained then chains().done(blob_of(i)) end
  else
    if outcome == END_RETRY or outcome == END_BURY then failed = failed + 1 end
    apply(outcome, lane, levels[i], blob_of(i), more, endings[at + ENDING_TALLY], names)
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
  if out[i] then
    local result = endings[at + ENDING_MEMBER] or RESULT_UNUSED
    members().come_back(name, out[i], result, rest, chance, more and more[MORE_LIFT])
    verdict = kind_for_lane(lane, verdict, result)
  end
  if verdict then learn(lane, verdict, endings[at + ENDING_TOOK], rest, interval, chance, WITH_ROBOTS[kind]) end
end

for i = 1, count do
  if live[i] then settle_one(i, live[i]) end
end

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
  if next(out) then load_lanes(members().served_sooner()) end
  write_lanes()
  close_books()
  call("HSET", P .. "calls", "s" .. worker, this_call .. " " .. letters)
end
return letters .. made
