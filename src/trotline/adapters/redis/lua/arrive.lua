#!lua
-- needs: job other_jobs pace sharing shared lanes levels lines
-- Tasks that moved here from another shard. They are known already, so nothing is asked but whether this very move was
-- made before. Its mark stays for longer than a call can be late: a worker that was frozen may bring the move once more
-- when the shard that they left has let them go already.
--   KEYS[1] P job     ARGV[2] msgpack: names of lanes, and for each task its mark, number of its lane, level,
--   wait, blob
--
--   P moved    zset of marks: fingerprint and number of redirects -> when it was made

local KEEP, REMOVED = 600, 2000

local asked = cmsgpack.unpack(ARGV[2])
local names, tasks = asked[1], asked[2]
load_lanes(names)
for at = 1, #tasks, 5 do
  if call("ZADD", P .. "moved", "NX", now, tasks[at]) == 1 then
    local wait = tasks[at + 3]
    wait_in(lanes[names[tasks[at + 1]]], tasks[at + 2], tasks[at + 4], wait > 0 and now + wait or 0)
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
