-- The leader of a spider, and whether the term of a call is still valid.
--
--   trotline:{jobs}:office:NAME   hash  epoch holder ends: the current term of an election
--   trotline:{jobs}:tick:NAME     hash  at schedule job ran: the last tick of its schedule
--
-- KEYS[1] is the key of the term.
--
-- uses clock: call now
-- exports: ELECTION JOBS SPIDER TICK epoch holder ends exact runs

ELECTION = KEYS[1]
JOBS, SPIDER = string.match(ELECTION, "^(trotline:{jobs}:)office:(.*)$")
TICK = JOBS .. "tick:" .. SPIDER

epoch, holder, ends = unpack(call("HMGET", ELECTION, "epoch", "holder", "ends"), 1, 3)
epoch, holder, ends = tonumber(epoch) or 0, holder or "", tonumber(ends) or 0

-- A number as text without loss of precision.
function exact(number) return string.format("%.17g", number) end

function runs(whose, which) return holder == whose and epoch == tonumber(which) and ends > now end
