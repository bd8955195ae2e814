#!lua
-- needs: job other_jobs pace sharing shared lanes levels lines graves
-- Visit pages again whose records failed validation, and forget those records.
--   KEYS[1] P job     ARGV[2] msgpack: for each record its entry in P rejects, the name that P reasons counts it under,
--   the level that its page goes to, or nil: others of the same page are still to come
--   gives how many pages rose

local asked = cmsgpack.unpack(ARGV[2])
local gone, risen = 0, 0

-- First what can fail: where each page goes.
local names, blobs = {}, {}
for i = 1, #asked, 3 do
  if asked[i + 2] then
    local _, _, at = unpack_("<dI4c0", asked[i])
    local _, name, from = unpack_("<i4Hc0", asked[i], at)
    load_lanes({name})
    names[i], blobs[i] = name, with_counts(sub(asked[i], from), 0, 0, 0)
  end
end

for i = 1, #asked, 3 do
  local why, level = asked[i + 1], asked[i + 2]
  -- Somebody else may have been faster: then the page waits already.
  if call("LREM", P .. "rejects", 1, asked[i]) == 1 then
    gone = gone + 1
    if call("HEXISTS", P .. "reasons", why) == 0 then why = folded(why) end
    if call("HINCRBY", P .. "reasons", why, -1) <= 0 then call("HDEL", P .. "reasons", why) end
    if level then
      wait_in(lanes[names[i]], level, blobs[i], 0)
      risen = risen + 1
    end
  end
end
if gone > 0 then
  tally("records rejected", -gone)
  if risen > 0 then
    book.done = book.done - risen
    book.waiting = book.waiting + risen
    book.entered = book.entered + risen
    reopened = true
    write_lanes()
  end
  close_books()
end
return risen
