-- The job's books, read at the start of a call and written at its end.
--
--   P job    books    twelve numbers, packed:
--                       waiting leased done dead   the four states a task can be in
--                       entered ended              how many ever came in / came to an end; never go back
--                       leases turns               behind tokens, and behind the stamps of lanes that stand in line
--                       delayed                    part of waiting
--                       buckets seen               size of the exact memory
--                       draining                   lanes that are
--            state    what the operator wants of the job
--            sealed, started_at, shards
--            number   the job's own, on this server     pace   the usual bounds of its lanes, and 1 if some
--                     have others, 2 if it heeds robots.txt
--            finished_at, announced (0, or the call that announced it); finished_with (see finish.lua)
--            idle     somebody waits for news
--            budget, most_pages, most_bytes (see budgets.py); high_water   waiting tasks above which the last come go first
--   P tallies, P news (channel)
--   P sessions    hash  session that was logged in to -> the process that did (of the first shard)
--
-- P is the prefix of the job's keys in a shard, S that of all keys there: KEYS[1] is P .. "job". ARGV[1] is the time of
-- a test's clock, or "".

local call = redis.call
local sub, byte, find, floor, ceil = string.sub, string.byte, string.find, math.floor, math.ceil
local pack_, unpack_ = struct.pack, struct.unpack

local JOB = KEYS[1]
local P = sub(JOB, 1, -4)
local S = string.match(P, "^trotline:{%d+}:")

local now = tonumber(ARGV[1])
if not now then
  local told = call("TIME")
  now = tonumber(told[1]) + tonumber(told[2]) / 1e6
end

local BOOKS = "<dddddddddddd"
local found = call("HMGET", JOB, "books", "state", "sealed", "finished_at", "idle", "shards", "number",
  "pace")
if not found[1] then return redis.error_reply("NOJOB this server has no such job") end

local book = {state = found[2], sealed = found[3] == "1", finished_at = found[4], idle = found[5] == "1"}
book.waiting, book.leased, book.done, book.dead, book.entered, book.ended, book.leases, book.turns, book.delayed,
  book.buckets, book.seen, book.draining = unpack_(BOOKS, found[1])
book.number = tonumber(found[7])
-- One shard of several is not the whole job: that it is empty says nothing.
local whole, open_before = found[6] == "1", book.waiting + book.leased

local tallies = {}
local reopened, woke = false, false

local function tally(name, count)
  tallies[name] = (tallies[name] or 0) + count
end

local VERDICTS = " ok moved unchanged blocked throttled gone broken unreachable unwanted refused handler "

-- A job has at most 500 names to count under (rules/counter_names.py): reasons quote hosts, and there are millions of those.
local function folded(name)
  local what, reason = string.match(name, "^(.-): (.*)$")
  if not reason or what == "links refused" then return name end
  local verdict = reason and (string.match(reason, "^(%l+): ") or string.match(reason, "^(%l+)$"))
  local known = verdict and string.find(VERDICTS, " " .. verdict .. " ", 1, true)
  return what .. (known and ": " .. verdict or "") .. ": others"
end

local function count_up(key, name, count)
  if call("HINCRBY", key, name, count) == count and call("HLEN", key) > 500 then
    call("HDEL", key, name)
    call("HINCRBY", key, folded(name), count)
  end
end

local function close_books()
  for name, count in pairs(tallies) do count_up(P .. "tallies", name, count) end
  call("HSET", JOB, "books", pack_(BOOKS, book.waiting, book.leased, book.done, book.dead, book.entered, book.ended,
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
