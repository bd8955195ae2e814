#!lua flags=no-writes
-- needs: job
-- The job's books, as they are at one moment.
--   KEYS[1] P job     gives now, fields of the job, how many tasks are not due yet, tallies, examples

-- Tasks that are due but were not promoted yet (nobody asked for work since) count as due.
local delayed = book.delayed
for _, name in ipairs(call("ZRANGEBYSCORE", P .. "due", "-inf", now, "LIMIT", 0, 1000)) do
  delayed = delayed - call("ZCOUNT", P .. "d:" .. name, "-inf", now)
end
return {
  floor(now * 1e6 + 0.5), call("HGETALL", JOB), delayed, call("HGETALL", P .. "tallies"), call("HGETALL", P .. "examples"),
}
