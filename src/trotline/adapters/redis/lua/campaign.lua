#!lua
-- Win the election if there is no leader, renew the term if the candidate leads.
--   ARGV[2] the candidate   ARGV[3] how long a term lasts
--   returns holder, epoch, now, ends of the current term
--
-- uses clock: call now
-- uses leader_term: ELECTION epoch holder ends exact

if ends <= now then
  epoch, holder, ends = epoch + 1, ARGV[2], now + tonumber(ARGV[3])
elseif holder == ARGV[2] then
  ends = now + tonumber(ARGV[3])
end
call("HSET", ELECTION, "epoch", epoch, "holder", holder, "ends", exact(ends))
return {holder, epoch, exact(now), exact(ends)}
