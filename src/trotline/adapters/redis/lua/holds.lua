#!lua flags=allow-oom
-- needs: job pace lanes graves workers
-- A worker tells which leases it knows of: what else is in its name goes back, and no attempt is counted.
-- Only what was handed out before that: this call may have been under way for long.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] the last token that reached it     then the tokens (6 bytes) that it knows
--   gives how many went back

local known = {}
for i = 4, #ARGV do known[unpack_(">I6", ARGV[i])] = true end
local unknown, last = {}, tonumber(ARGV[3])
for _, lease in ipairs(held_by(ARGV[2])) do
  if lease[1] <= last and not known[lease[1]] then unknown[#unknown + 1] = lease end
end
if #unknown == 0 then return 0 end
for i = 1, #unknown do call("HDEL", HELD .. ARGV[2], pack_(">I6", unknown[i][1])) end
give_back(unknown)
tally("unknown to its worker", #unknown)
write_lanes()
close_books()
return #unknown
