#!lua flags=no-writes
-- needs: job other_jobs pace sharing shared
-- Why a lane is as fast as it is, over all jobs.
--   KEYS[1] P job     ARGV[2] lane
--   gives nothing if nobody has been there; else, as text, its interval, visits at the same time, visits now, Crawl-delay,
--   limit, until when it rests and why, how many of the operator's bounds follow (0 or 3) and these; then for each job
--   whose pace is in force its prefix and its bounds

local packed = call("HGET", SHARED, ARGV[2])
if not packed then return {} end
local lane = read_shared(ARGV[2], packed, 0, 0, false, false, 0, 0, 0, 0, 0, 0, 0)
local told = {}

local function tell_number(number) told[#told + 1] = string.format("%.17g", number) end

for _, field in ipairs({INTERVAL, CONCURRENCY, LEASED, ASKED, LIMIT, REST}) do tell_number(lane[field]) end
told[#told + 1] = lane[WHY]
local ordered = lane[ORDERED] or {}
tell_number(#ordered)
for i = 1, #ordered do tell_number(ordered[i]) end
local claims = lane[CLAIMS]
for at = 1, #claims, CLAIM do
  local job = job_of(claims[at])
  if counts(claims, at) and not job.over then
    told[#told + 1] = job.prefix
    for i = at + AT_LEAST, at + PLACES do tell_number(claims[i]) end
  end
end
return told
