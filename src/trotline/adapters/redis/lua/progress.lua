#!lua flags=no-writes
-- A snapshot of the job's counters.
--   KEYS[1] P job     returns ProgressReply (layouts.py)
--
-- uses clock: call now
-- uses job_books: floor JOB P book

local LOOKED_AT = 1000

-- Tasks that are due but were not promoted yet (no lease since) count as due.
local delayed = book.delayed
for _, name in ipairs(call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, LOOKED_AT)) do
  delayed = delayed - call("ZCOUNT", P .. "d:" .. name, "-inf", now)
end
return {
  floor(now * 1e6 + 0.5), book.waiting, book.leased, book.done, book.dead, delayed, book.state, book.sealed and 1 or 0,
  call("HGET", JOB, "started_at"), book.finished_at or "", call("HGETALL", P .. "tallies"),
  call("HGETALL", P .. "examples"),
}
