#!lua
-- Queue buried tasks again, with all counts reset.
--   KEYS[1] P job     ARGV[2] msgpack: prefix of the reason, then for each its id and level
--   returns the number of revived tasks
--
-- uses clock: call
-- uses job_books: sub unpack_ P book reopened folded close_books
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: wait_in
-- uses ready_lanes: write_lanes
-- uses graveyard: with_counts

local asked = cmsgpack.unpack(ARGV[2])
local why, risen = asked[1], 0
for i = 2, #asked, 2 do
  local id, level = asked[i], asked[i + 1]
  local grave = call("HGET", P .. "graves", id)
  if grave then
    local _, its_why, _, at = unpack_(GRAVE_FORM, grave)
    if sub(its_why, 1, #why) == why then
      local _, name, from = unpack_(PARCEL_FORM, grave, at)
      load_lanes({name})
      call("HDEL", P .. "graves", id)
      call("ZREM", P .. "graves:order", id)
      local counted = call("HEXISTS", P .. "reasons", its_why) == 1 and its_why or folded(its_why)
      if call("HINCRBY", P .. "reasons", counted, -1) <= 0 then call("HDEL", P .. "reasons", counted) end
      wait_in(lanes[name], level, with_counts(sub(grave, from), 0, 0, 0), 0)
      risen = risen + 1
    end
  end
end
if risen > 0 then
  book.dead = book.dead - risen
  book.waiting = book.waiting + risen
  book.entered = book.entered + risen
  reopened = true
  write_lanes()
  close_books()
end
return risen
