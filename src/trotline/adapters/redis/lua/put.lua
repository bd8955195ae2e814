#!lua
-- needs: job pace lanes seen admit
-- Admit what is new.
--   KEYS[1] P job     ARGV[2] who asks     ARGV[3] this call's number
--   ARGV[4] msgpack: names of lanes, their paces, tasks (see admit.lua)
--   gives one letter per task: n(ew), d(uplicate), r(efused)
--
--   P put:CLIENT    number of its last call and the answers, for the case that the reply was lost

local last = P .. "put:" .. ARGV[2]
local kept = call("GET", last)
if kept and sub(kept, 1, #ARGV[3] + 1) == ARGV[3] .. " " then return sub(kept, #ARGV[3] + 2) end

local asked = cmsgpack.unpack(ARGV[4])
local answers = table.concat(admit(asked[1], asked[2], asked[3]))
write_lanes()
close_books()
call("SET", last, ARGV[3] .. " " .. answers, "EX", 120)
return answers
