#!lua
-- Queue buried tasks again, with all counts reset; the step of a failed chain with the rest of it.
--   KEYS[1] P job     ARGV[2] msgpack: prefix of the reason, then for each its id and level
--   returns the number of revived tasks, and 1 if steps of chains are left to revive: without ids it goes on with them
--
-- uses clock: call
-- uses job_counters: sub unpack_ P close_books
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: wait_in
-- uses ready_lanes: write_lanes
-- uses dequeued_tasks: with_counts exhume
-- uses chains: is_step chains

local asked = cmsgpack.unpack(ARGV[2])
local why, risen, tended, more = asked[1], 0, false, false
-- Of tasks that leave for another shard (mark_moved_graves.lua).
local some_leave = call("EXISTS", P .. "leaving") == 1

local function revive(id, its_why, level, lane, blob)
  local with_chain = is_step(blob) and chains().revive(id, its_why, blob)
  if with_chain then return with_chain end
  load_lanes({lane})
  exhume(id, its_why)
  wait_in(lanes[lane], level, with_counts(blob, 0, 0, 0), 0)
  return 1
end

for i = 2, #asked, 2 do
  local id, level = asked[i], asked[i + 1]
  local grave = not (some_leave and call("HEXISTS", P .. "leaving", id) == 1) and call("HGET", P .. "graves", id)
  if grave then
    local _, its_why, _, at = unpack_(GRAVE_FORM, grave)
    if sub(its_why, 1, #why) == why then
      local _, name, from = unpack_(PARCEL_FORM, grave, at)
      risen = risen + revive(id, its_why, level, name, sub(grave, from))
    end
  end
end
if call("EXISTS", P .. "broken") == 1 then
  local others
  others, more = chains().tend()
  risen, tended = risen + others, true
end
if risen > 0 or tended then
  write_lanes()
  close_books()
end
return {risen, more and 1 or 0}
