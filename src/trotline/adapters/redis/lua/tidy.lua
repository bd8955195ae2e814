#!lua flags=allow-oom
-- needs: job pace lanes
-- A job has ended: lanes that have learnt nothing worth keeping leave the memory. Should work come again, they are
-- opened anew, at the pace that they had.
--   KEYS[1] P job     ARGV[2] cursor     ARGV[3] about how many     ARGV[4] msgpack: the job's usual pace
--   gives the next cursor

local pace = cmsgpack.unpack(ARGV[4])

local function is_plain(lane)
  return lane[LEVELS] == 0 and lane[LEASED] == 0 and lane[STATE] == RUNNING and lane[FAILURES] == 0
    and lane[NEXT] <= now and lane[REST] <= now and lane[INTERVAL] == pace[1] and lane[FLOOR] == pace[1]
    and lane[CEILING] == pace[2] and lane[CONCURRENCY] == pace[3]
end

local page = call("HSCAN", LANES, ARGV[2], "COUNT", ARGV[3])
local plain = {}
for i = 1, #page[2], 2 do
  local name = page[2][i]
  if is_plain(read_lane(name, page[2][i + 1])) and call("EXISTS", LATE .. name) == 0 then
    plain[#plain + 1] = name
  end
end
if #plain > 0 then many("HDEL", LANES, plain) end
-- Where nothing waits, nobody stands in line.
if book.waiting == 0 then call("UNLINK", P .. "rest") end
return page[1]
