-- Who leads an office, and whether a deed's term still runs.
--
--   trotline:{jobs}:office:NAME   hash  epoch holder ends
--   trotline:{jobs}:tick:NAME     hash  at schedule job ran: the last tick of its schedule
--
-- KEYS[1] is the office, ARGV[1] the time of a test's clock, or "".

local call = redis.call
local OFFICE = KEYS[1]
local JOBS, NAME = string.match(OFFICE, "^(trotline:{jobs}:)office:(.*)$")
local TICK = JOBS .. "tick:" .. NAME

local now = tonumber(ARGV[1])
if not now then
  local told = call("TIME")
  now = tonumber(told[1]) + tonumber(told[2]) / 1e6
end

local found = call("HMGET", OFFICE, "epoch", "holder", "ends")
local epoch, holder, ends = tonumber(found[1]) or 0, found[2] or "", tonumber(found[3]) or 0

-- A number as text that comes back as the same number: Lua would cut it.
local function exact(number) return string.format("%.17g", number) end

local function runs(whose, which) return holder == whose and epoch == tonumber(which) and ends > now end
