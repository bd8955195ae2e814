#!lua
-- needs: job other_jobs pace learning sharing shared lanes levels lines seen admit graves workers
-- End leases: outcome, children and news, each lease whole or not at all.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] this call's name
--   ARGV[4] msgpack: names of lanes, children (see admit.lua), their owners, endings, how many
--   an ending is seven values in a row: token (6 bytes), fingerprint (8 bytes), outcome, name to tally, kind of the news
--     ("+" before it: robots.txt is known) or nil, how long the visit took, and what else there is, or nil:
--       of the news rest, interval, chance; tallies; wait, why, detail; number of the lane it moved to, blob it became;
--       examples, rejects
--   gives one digit per ending: 1 applied, 0 stale
--
--   P rejects    list  when, the record that failed validation, its page's parcel    P examples  hash  tally -> first URL

local DONE, RETRY, SNOOZE, BURY, LEFT = 0, 1, 2, 3, 4
local LATER_BY = 10
local MOST_NAMES, MOST_REJECTS = 500, 10000

local worker, this_call = ARGV[2], ARGV[3]
local kept = call("HGET", P .. "calls", "s" .. worker)
if kept and sub(kept, 1, #this_call + 1) == this_call .. " " then
  -- Its reply was lost: what it did stands, and so does its answer.
  return sub(kept, #this_call + 2)
end

local asked = cmsgpack.unpack(ARGV[4])
local names, children, owners, endings, count = asked[1], asked[2], asked[3], asked[4], asked[5]

local tokens = {}
for i = 1, count do tokens[i] = endings[7 * i - 6] end
local parcels = call("HMGET", HELD .. worker, unpack(tokens, 1, min(count, 1000)))
for from = 1001, count, 1000 do
  local some = call("HMGET", HELD .. worker, unpack(tokens, from, min(count, from + 999)))
  for i = 1, #some do parcels[from + i - 1] = some[i] end
end

-- Which leases are live: the token is known, it is this task's, and it stands here for the first time.
local live, answers, ended, levels, starts, endeds = {}, {}, {}, {}, {}, 0
local known = {}
for i = 1, count do
  local parcel, token = parcels[i], tokens[i]
  if parcel and not known[token] then
    local level, lane, at = unpack_("<i4Hc0", parcel)
    if find(parcel, endings[7 * i - 5], at + 1, true) == at + 1 then
      known[token] = true
      endeds = endeds + 1
      ended[endeds] = token
      live[i], levels[i], starts[i] = lane, level, at
    end
  end
  answers[i] = live[i] and "1" or "0"
end

local function wait_again(lane, level, blob, wait)
  wait_in(lane, level, blob, wait > 0 and now + wait or 0)
  book.waiting = book.waiting + 1
end

local function retry(lane, level, blob, more)
  local attempt, deaths, kills = counts_of(blob)
  if attempt then blob = with_counts(blob, attempt + 1, deaths, kills) end
  wait_again(lane, (floor(level / 2) + LATER_BY) * 2 + 1, blob, more[5])
end

-- The task goes on under another URL, perhaps in another lane; it stays the same task.
local function snooze(lane, level, blob, more)
  if more[8] > 0 then
    local name = names[more[8]]
    load_lanes({name})
    lane, blob = lanes[name], sub(more[9], 1, 9) .. sub(blob, 10, 13) .. sub(more[9], 14)
  end
  wait_again(lane, level, blob, more[5])
end

-- A handler that is wrong about every page must not fill the memory that everybody's tasks are in: what does not fit is
-- counted.
local function keep_rare(examples, rejects, parcel)
  for i = 1, #examples, 2 do
    if call("HLEN", P .. "examples") < MOST_NAMES then
      call("HSETNX", P .. "examples", examples[i], examples[i + 1])
    end
  end
  for i = 1, #rejects, 3 do
    local count, row = rejects[i + 1], rejects[i + 2]
    count_up(P .. "reasons", rejects[i], count)
    tally("records rejected", count)
    if row ~= "" and call("LLEN", P .. "rejects") < MOST_REJECTS then
      call("RPUSH", P .. "rejects", pack_("<dI4c0", now, #row, row) .. parcel)
    else
      tally("records rejected and not kept", count)
    end
  end
end

local function apply(outcome, lane, level, blob, more, name)
  if outcome == BURY then
    bury(lane[NAME], level, blob, more[6], more[7], name)
    return
  end
  tally(name, 1)
  if outcome == RETRY then
    retry(lane, level, blob, more)
  elseif outcome == SNOOZE then
    snooze(lane, level, blob, more)
  else
    -- It goes on in another shard, which has it already.
    book.ended = book.ended + 1
  end
end

-- A "+" before the kind: the visit knew robots.txt. As a word, because nearly every visit says so.
local TELLS = {}
for kind in string.gmatch(VERDICTS, "%l+") do TELLS["+" .. kind] = kind end

-- Most visits end well, in lanes that have room. Then nobody waits for a place, and what the job has there is not read.
do
  local some, asked, needed = {}, {}, {}
  for i = 1, count do
    local name = live[i]
    if name then
      if asked[name] == nil then
        some[#some + 1] = name
        asked[name] = false
      end
      if endings[7 * i - 4] ~= DONE then asked[name] = true end
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

local done = 0
for i = 1, count do
  local name = live[i]
  if name then
    local at = 7 * i
    local lane = lanes[name]
    local outcome, kind, more = endings[at - 4], endings[at - 2], endings[at]
    run(lane, -1)
    if outcome == DONE then
      done = done + 1
      tally(endings[at - 3], 1)
    else
      apply(outcome, lane, levels[i], sub(parcels[i], starts[i]), more, endings[at - 3])
    end
    if more then
      local counted = more[4]
      if kind then learn(lane, TELLS[kind] or kind, endings[at - 1], more[1], more[2], more[3], TELLS[kind]) end
      for k = 1, #counted, 2 do tally(counted[k], counted[k + 1]) end
      if more[10] then keep_rare(more[10], more[11], parcels[i]) end
    elseif kind then
      learn(lane, TELLS[kind] or kind, endings[at - 1], 0, 0, 0, TELLS[kind])
    end
  end
end

local letters = table.concat(answers)
if endeds > 0 then
  book.leased = book.leased - endeds
  book.done = book.done + done
  book.ended = book.ended + done
  many("HDEL", HELD .. worker, ended)
  if done > 0 then call("HINCRBY", P .. "figures", "d" .. worker, done) end
  if endeds > done then call("HINCRBY", P .. "figures", "f" .. worker, endeds - done) end
  if #children > 0 then admit(names, children, owners, live) end
  write_lanes()
  close_books()
  call("HSET", P .. "calls", "s" .. worker, this_call .. " " .. letters)
end
return letters
