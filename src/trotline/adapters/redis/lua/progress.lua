#!lua flags=no-writes
-- A snapshot of the job's counters.
--   KEYS[1] P job     returns ProgressReply (lua_layouts.py)
--
-- uses clock: call now
-- uses job_counters: floor max min JOB P book

-- A score that another program wrote may be too large for a reply.
local LOOKED_AT, LAST_LANES, FARTHEST = 1000, 100, 1000000000

-- Tasks that are due but were not promoted yet (no lease since) count as due.
local delayed = book.delayed
for _, name in ipairs(call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, LOOKED_AT)) do
  delayed = delayed - call("ZCOUNT", P .. "d:" .. name, "-inf", now)
end
-- When the last of them is due: of the lanes whose first one is due last.
local last_due = now
for _, name in ipairs(delayed > 0 and call("ZREVRANGE", P .. "due", 0, LAST_LANES - 1) or {}) do
  local _, due = unpack(call("ZREVRANGE", P .. "d:" .. name, 0, 0, "WITHSCORES"), 1, 2)
  last_due = max(last_due, min(tonumber(due) or 0, now + FARTHEST))
end
return {
  floor(now * 1e6 + 0.5), book.waiting, book.leased, book.done, book.dead, delayed, floor((last_due - now) * 1e6 + 0.5),
  book.state, book.sealed and 1 or 0,
  call("HGET", JOB, "started_at"), book.finished_at or "", call("HGETALL", P .. "tallies"),
  call("HGETALL", P .. "examples"), book.shelf and 1 or 0,
}
