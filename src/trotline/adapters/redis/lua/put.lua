#!lua
-- needs: job other_jobs pace sharing shared lanes levels lines seen admit
-- Admit what is new.
--   KEYS[1] P job     ARGV[2] who asks     ARGV[3] this call's number
--   ARGV[4] msgpack: names of lanes, tasks (see admit.lua)
--   ARGV[5] worker     ARGV[6], ARGV[7] token (6 bytes) and fingerprint (8 bytes): only while it holds this lease
--   gives nothing if it does not, else one letter per task: n(ew), d(uplicate), r(efused)
--
--   P put:CLIENT    number of its last call and the answers, for the case that the reply was lost

local last = P .. "put:" .. ARGV[2]
local kept = call("GET", last)
if kept and sub(kept, 1, #ARGV[3] + 1) == ARGV[3] .. " " then return sub(kept, #ARGV[3] + 2) end

if ARGV[5] then
  local parcel = ARGV[6] ~= "" and call("HGET", P .. "held:" .. ARGV[5], ARGV[6])
  if not parcel then return "" end
  local _, _, at = unpack_("<i4Hc0", parcel)
  if sub(parcel, at + 1, at + 8) ~= ARGV[7] then return "" end
end

local asked = cmsgpack.unpack(ARGV[4])
local answers = table.concat(admit(asked[1], asked[2]))
write_lanes()
close_books()
call("SET", last, ARGV[3] .. " " .. answers, "EX", 120)
return answers
