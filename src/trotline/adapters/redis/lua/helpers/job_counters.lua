-- The job's counters, read at the start of a call and written at its end.
--
--   P job    books    packed numbers: Books in lua_layouts.py
--            state    the operator's state of the job
--            sealed, started_at, shards
--            number   the job's own, on this server     pace   the usual bounds of its lanes, and 1 if some
--                     have others, 2 if it heeds robots.txt, 4 if each route has a queue of its own
--            finished_at, announced (0, or the call that announced it); finished_with (see finish_sharded.lua)
--            idle     1 while a worker waits for a wake-up
--            shelf, shelved   see broker_shelves.lua
--            budget, most_pages, most_bytes (see budgets.py); high_water   number of waiting tasks above which the newest go first
--   P tallies; P news    channel of wake-ups
--   P sessions    hash  session -> the process that is logged in (first shard only)
--
-- P is the prefix of the job's keys in a shard, S that of all keys there: KEYS[1] is P .. "job".
--
-- uses clock: call now
-- exports: sub byte find floor ceil max min pack_ unpack_ JOB P S book whole reopened woke job_pace many
-- exports: tally folded count_up close_books

sub, byte, find, floor, ceil = string.sub, string.byte, string.find, math.floor, math.ceil
max, min = math.max, math.min
pack_, unpack_ = struct.pack, struct.unpack

JOB = KEYS[1]
P = sub(JOB, 1, -4)
S = string.match(P, "^trotline:{%d+}:")

local packed, state, sealed, finished_at, idle, shards, number, packed_pace, shelf = unpack(
  call("HMGET", JOB, "books", "state", "sealed", "finished_at", "idle", "shards", "number", "pace", "shelf"), 1, 9)
if not packed then return redis.error_reply("NOJOB this server has no such job") end

local waiting, leased, done, dead, entered, ended, leases, turns, delayed, buckets, seen, draining =
  unpack_(BOOKS_FORM, packed)
-- In one piece: a table that grows is copied.
book = {state = state, sealed = sealed == "1", finished_at = finished_at, idle = idle == "1", number = tonumber(number),
  shelf = shelf == "1", waiting = waiting, leased = leased, done = done, dead = dead, entered = entered, ended = ended,
  leases = leases, turns = turns, delayed = delayed, buckets = buckets, seen = seen, draining = draining}
job_pace = packed_pace
-- One empty shard of several does not mean that the job is finished.
whole = shards == "1"
local open_before = waiting + leased

local tallies = {}
reopened, woke = false, false

-- Run a command with a list of any length, in chunks. Returns the last answer.
function many(command, key, list)
  local count, answer = #list, nil
  for from = 1, count, 1000 do answer = call(command, key, unpack(list, from, min(count, from + 999))) end
  return answer
end

function tally(name, count)
  tallies[name] = (tallies[name] or 0) + count
end

-- A job has at most MOST_NAMES counters (rules/counter_limits.py): reasons contain host names.
function folded(name)
  local what, reason = string.match(name, "^(.-): (.*)$")
  if not reason or sub(name, 1, #NEVER_FOLDED) == NEVER_FOLDED then return name end
  local verdict = reason and (string.match(reason, "^(%l+): ") or string.match(reason, "^(%l+)$"))
  local known = verdict and find(VERDICTS, " " .. verdict .. " ", 1, true)
  return what .. (known and ": " .. verdict or "") .. ": others"
end

function count_up(key, name, count)
  if call("HINCRBY", key, name, count) == count and call("HLEN", key) > MOST_NAMES then
    call("HDEL", key, name)
    call("HINCRBY", key, folded(name), count)
  end
end

function close_books()
  for name, count in pairs(tallies) do count_up(P .. "tallies", name, count) end
  call("HSET", JOB, "books", pack_(BOOKS_FORM, book.waiting, book.leased, book.done, book.dead, book.entered, book.ended,
    book.leases, book.turns, book.delayed, book.buckets, book.seen, book.draining))
  if reopened and whole and book.finished_at then
    call("HDEL", JOB, "finished_at")
    call("HSET", JOB, "announced", "0")
    book.finished_at = false
  end
  if book.sealed and book.waiting + book.leased == 0 then
    if whole and not book.finished_at then
      call("HSET", JOB, "finished_at", now)
      book.finished_at = now
      woke = true
    end
    woke = woke or open_before > 0
  end
  if woke and book.idle then
    call("HSET", JOB, "idle", "0")
    call("PUBLISH", P .. "news", "")
  end
end
