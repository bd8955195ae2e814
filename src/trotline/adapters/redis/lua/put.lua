#!lua
-- Admit new tasks.
--   KEYS[1] P job     ARGV[2] client     ARGV[3] this call's number
--   ARGV[4] msgpack: names of lanes, tasks (see admit.lua), true if some have a chain, and true if the caller publishes
--   ARGV[5] worker     ARGV[6], ARGV[7] token (6 bytes) and fingerprint (8 bytes): only while it holds this lease
--   returns "" if it does not, else one letter per task: n(ew), d(uplicate), r(efused); and a line per parcel to publish,
--   unless it was repeated: those are published when their time is over
--
--   P put:CLIENT    number of its last call and the answers, for the case that the reply was lost
--
-- uses clock: call
-- uses job_counters: sub unpack_ P close_books
-- uses ready_lanes: write_lanes
-- uses admit: admit

-- Seconds; a call is repeated within a few.
local KEPT_FOR = 120

local last = P .. "put:" .. ARGV[2]
local kept = call("GET", last)
if kept and sub(kept, 1, #ARGV[3] + 1) == ARGV[3] .. " " then return sub(kept, #ARGV[3] + 2) end

if ARGV[5] then
  local parcel = ARGV[6] ~= "" and call("HGET", P .. "held:" .. ARGV[5], ARGV[6])
  if not parcel then return "" end
  local _, _, at = unpack_(PARCEL_FORM, parcel)
  if sub(parcel, at + BLOB_FINGERPRINT - 1, at + BLOB_COUNTS - 2) ~= ARGV[7] then return "" end
end

local names, tasks, chained, mine = unpack(cmsgpack.unpack(ARGV[4]), 1, 4)
local admitted, made = admit(names, tasks, chained, "p" .. ARGV[2] .. "." .. ARGV[3], mine)
local answers = table.concat(admitted)
write_lanes()
close_books()
call("SET", last, ARGV[3] .. " " .. answers, "EX", KEPT_FOR)
return answers .. made
