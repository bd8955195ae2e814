-- Who is the leader of a spider, and whether the term of a call still runs.
--
--   trotline:{jobs}:office:NAME   hash  epoch holder ends
--   trotline:{jobs}:tick:NAME     hash  at schedule job ran: the last tick of its schedule
--
-- KEYS[1] is the key of the leader.
--
-- uses clock: call now
-- exports: OFFICE JOBS SPIDER TICK epoch holder ends exact runs

OFFICE = KEYS[1]
JOBS, SPIDER = string.match(OFFICE, "^(trotline:{jobs}:)office:(.*)$")
TICK = JOBS .. "tick:" .. SPIDER

epoch, holder, ends = unpack(call("HMGET", OFFICE, "epoch", "holder", "ends"), 1, 3)
epoch, holder, ends = tonumber(epoch) or 0, holder or "", tonumber(ends) or 0

-- A number as text that comes back as the same number: Lua would cut it.
function exact(number) return string.format("%.17g", number) end

function runs(whose, which) return holder == whose and epoch == tonumber(which) and ends > now end
