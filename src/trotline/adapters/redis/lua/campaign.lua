#!lua
-- Take the office if it is free, renew if it is ours.
--   ARGV[2] the candidate   ARGV[3] how long a term lasts
--   gives holder, epoch, now, ends of the term that runs
--
-- uses clock: call now
-- uses leader_term: OFFICE epoch holder ends exact

if ends <= now then
  epoch, holder, ends = epoch + 1, ARGV[2], now + tonumber(ARGV[3])
elseif holder == ARGV[2] then
  ends = now + tonumber(ARGV[3])
end
call("HSET", OFFICE, "epoch", epoch, "holder", holder, "ends", exact(ends))
return {holder, epoch, exact(now), exact(ends)}
