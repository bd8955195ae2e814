#!lua
-- Receive tasks that moved here from another shard. They are not checked for duplicates, only for a repeat of the same
-- move. Its mark is kept for longer than a call can be late: a suspended worker may repeat the move after the old shard
-- has settled the task.
--   KEYS[1] P job     ARGV[2] msgpack: names of lanes, and a MovedTask (lua_layouts.py) for each task
--
--   P moved    zset of marks: fingerprint and number of redirects -> when it was made; "g" and the grave of a task that
--              was revived -> for ever, until its grave is emptied (revive_with_other_pool.py)
--
-- uses clock: call now
-- uses job_counters: sub P book reopened many close_books
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: wait_in
-- uses ready_lanes: write_lanes

local KEEP, REMOVED = 600, 2000

local names, tasks = unpack(cmsgpack.unpack(ARGV[2]), 1, 2)
load_lanes(names)
for at = 1, #tasks, MOVED_SIZE do
  local mark = tasks[at + MOVED_MARK]
  if call("ZADD", P .. "moved", "NX", sub(mark, 1, 1) == "g" and "+inf" or now, mark) == 1 then
    local lane, wait = lanes[names[tasks[at + MOVED_LANE]]], tasks[at + MOVED_WAIT]
    wait_in(lane, tasks[at + MOVED_LEVEL], tasks[at + MOVED_BLOB], wait > 0 and now + wait or 0)
    book.waiting = book.waiting + 1
    book.entered = book.entered + 1
    reopened = true
  end
end
local old = call("ZRANGEBYSCORE", P .. "moved", "-inf", now - KEEP, "LIMIT", 0, REMOVED)
if #old > 0 then many("ZREM", P .. "moved", old) end
write_lanes()
close_books()
return 1
