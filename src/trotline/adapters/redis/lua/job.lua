-- The job's books, read at the start of a call and written at its end.
--
--   P job    waiting leased done dead    the four states a task can be in (delayed: part of waiting)
--            entered ended               how many ever came in / came to an end; never go back
--            leases turns                the counters behind tokens, and behind the stamps of lanes that wait
--            buckets seen                size of the exact memory
--            state draining              what the operator wants of the job; how many lanes are draining
--            sealed finished_at announced
--            idle                        somebody waits for news
--   P tallies, P news (channel)
--
-- P is the prefix that all keys of a shard share: KEYS[1] is P .. "job". ARGV[1] is the time of a test's clock, or "".

local call = redis.call
local sub, byte, floor = string.sub, string.byte, math.floor
local pack_, unpack_ = struct.pack, struct.unpack

local JOB = KEYS[1]
local P = sub(JOB, 1, -4)

local now = tonumber(ARGV[1])
if not now then
  local told = call("TIME")
  now = tonumber(told[1]) + tonumber(told[2]) / 1e6
end

local COUNTS = {"waiting", "leased", "done", "dead", "entered", "ended", "leases", "turns", "delayed",
  "buckets", "seen", "draining"}
local found = call("HMGET", JOB, "waiting", "leased", "done", "dead", "entered", "ended", "leases", "turns",
  "delayed", "buckets", "seen", "draining", "state", "sealed", "finished_at", "idle")
if not found[1] then return redis.error_reply("NOJOB this server has no such job") end

local book = {}
for i, name in ipairs(COUNTS) do book[name] = tonumber(found[i]) end
book.state, book.sealed, book.finished_at, book.idle = found[13], found[14] == "1", found[15], found[16] == "1"

local tallies = {}
local reopened, woke = false, false

local function tally(name, count)
  tallies[name] = (tallies[name] or 0) + count
end

local function close_books()
  for name, count in pairs(tallies) do call("HINCRBY", P .. "tallies", name, count) end
  local fields = {"announced", "0"}
  if not reopened then fields = {} end
  for _, name in ipairs(COUNTS) do
    fields[#fields + 1] = name
    fields[#fields + 1] = book[name]
  end
  if reopened and book.finished_at then
    call("HDEL", JOB, "finished_at")
    book.finished_at = false
  end
  if book.sealed and not book.finished_at and book.waiting + book.leased == 0 then
    fields[#fields + 1] = "finished_at"
    fields[#fields + 1] = now
    book.finished_at = now
    woke = true
  end
  if woke and book.idle then
    fields[#fields + 1] = "idle"
    fields[#fields + 1] = "0"
    call("PUBLISH", P .. "news", "")
  end
  call("HSET", JOB, unpack(fields))
end
