#!lua
-- Queue pages again whose records failed validation, and delete those records.
--   KEYS[1] P job     ARGV[2] msgpack: a RevisitRow (lua_layouts.py) for each record
--   returns the number of pages
--
-- uses clock: call
-- uses job_counters: sub unpack_ P book reopened tally folded close_books
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: wait_in
-- uses ready_lanes: write_lanes
-- uses dequeued_tasks: with_counts

local asked = cmsgpack.unpack(ARGV[2])
local gone, risen = 0, 0

-- First what can fail: decoding the pages.
local names, blobs = {}, {}
for i = 1, #asked, REVISIT_SIZE do
  if asked[i + REVISIT_LEVEL] then
    local entry = asked[i + REVISIT_ENTRY]
    local _, _, at = unpack_(REJECT_FORM, entry)
    local _, name, from = unpack_(PARCEL_FORM, entry, at)
    load_lanes({name})
    names[i], blobs[i] = name, with_counts(sub(entry, from), 0, 0, 0)
  end
end

for i = 1, #asked, REVISIT_SIZE do
  local entry, why, level = asked[i + REVISIT_ENTRY], asked[i + REVISIT_WHY], asked[i + REVISIT_LEVEL]
  -- Another client may have been faster: then the page is queued already.
  if call("LREM", P .. "rejects", 1, entry) == 1 then
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
