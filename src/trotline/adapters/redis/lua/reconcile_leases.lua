#!lua flags=allow-oom
-- Return leases that their worker does not know, without counting an attempt.
-- Only those issued before the call was sent: it may have been delayed.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] the last token that reached it     then the tokens (6 bytes) that it knows
--   returns the number of returned leases, and 1 if there are more
--
-- uses job_counters: unpack_ tally close_books
-- uses ready_lanes: write_lanes
-- uses worker_leases: latest_first give_back held_by take_from

local known = {}
for i = 4, #ARGV do known[unpack_(TOKEN_FORM, ARGV[i])] = true end
local unknown, last = {}, tonumber(ARGV[3])
for _, lease in ipairs((held_by(ARGV[2]))) do
  if lease.token <= last and not known[lease.token] then unknown[#unknown + 1] = lease end
end
if #unknown == 0 then return {0, 0} end
latest_first(unknown)
local more = #unknown > RETURNED_AT_ONCE
while #unknown > RETURNED_AT_ONCE do unknown[#unknown] = nil end
take_from(ARGV[2], unknown)
give_back(unknown)
tally("unknown to its worker", #unknown)
write_lanes()
close_books()
return {#unknown, more and 1 or 0}
