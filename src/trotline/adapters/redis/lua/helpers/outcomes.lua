-- What becomes of a task whose lease ends (EndKind in lua_layouts.py), and what is kept of its page. Part of settle.lua.
--
-- uses clock: call now
-- uses job_counters: sub floor pack_ P book tally count_up
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: wait_in
-- uses dequeued_tasks: counts_of with_packed_counts with_counts
-- uses graveyard: bury
-- exports: apply keep_rare

local function wait_again(lane, level, blob, wait)
  wait_in(lane, level, blob, wait > 0 and now + wait or 0)
  book.waiting = book.waiting + 1
end

local function retry(lane, level, blob, more)
  local attempt, deaths, kills = counts_of(blob)
  if attempt then blob = with_counts(blob, attempt + 1, deaths, kills) end
  wait_again(lane, (floor(level / 2) + LATER_BY) * 2 + 1, blob, more[MORE_WAIT])
end

-- The same task continues under another URL, possibly in another lane.
local function snooze(lane, level, blob, more, names)
  if more[MORE_LANE] > 0 then
    local name = names[more[MORE_LANE]]
    load_lanes({name})
    lane, blob = lanes[name], with_packed_counts(more[MORE_BLOB], sub(blob, BLOB_COUNTS, BLOB_AFTER_COUNTS - 1))
  end
  wait_again(lane, level, blob, more[MORE_WAIT])
end

-- Bounded, so that a wrong handler does not fill the memory: further rejects are only counted.
function keep_rare(examples, rejects, parcel)
  for i = 1, #examples, 2 do
    if call("HLEN", P .. "examples") < MOST_NAMES then
      call("HSETNX", P .. "examples", examples[i], examples[i + 1])
    end
  end
  for i = 1, #rejects, REJECT_SIZE do
    local why, count, row = rejects[i + REJECT_WHY], rejects[i + REJECT_TIMES], rejects[i + REJECT_ROW]
    count_up(P .. "reasons", why, count)
    tally("records rejected", count)
    if row ~= "" and call("LLEN", P .. "rejects") < MOST_REJECTS then
      call("RPUSH", P .. "rejects", pack_(REJECT_FORM, now, #row, row) .. parcel)
    else
      tally(NOT_KEPT, count)
    end
  end
end

-- What becomes of a task whose lease ended, unless it is done. names: the lanes of the call.
function apply(outcome, lane, level, blob, more, name, names)
  if outcome == END_BURY then
    bury(lane[NAME], level, blob, more[MORE_WHY], more[MORE_DETAIL], name)
    return
  end
  tally(name, 1)
  if outcome == END_RETRY then
    retry(lane, level, blob, more)
  elseif outcome == END_SNOOZE then
    snooze(lane, level, blob, more, names)
  else
    -- END_LEFT: it continues in another shard, which has it already.
    book.ended = book.ended + 1
  end
end
