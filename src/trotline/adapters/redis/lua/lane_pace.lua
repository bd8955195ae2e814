#!lua flags=no-writes
-- The pace of a lane, and what determines it, over all jobs.
--   KEYS[1] P job     ARGV[2] lane
--   returns nil if no job has used it; else, as text, its interval, concurrency, visits in flight, Crawl-delay,
--   limit, until when it rests and why, its retry credit or "", how many of the operator's bounds follow (0 or 3) and
--   these; then for each job whose pace is in force its prefix and its bounds
--
-- uses clock: call
-- uses other_jobs: job_of
-- uses pace: failing credit
-- uses lane_sharing: counts
-- uses shared_lanes: SHARED read_shared

local packed = call("HGET", SHARED, ARGV[2])
if not packed then return {} end
local lane = read_shared(ARGV[2], packed)
local found = {}

local function add_number(number) found[#found + 1] = string.format("%.17g", number) end

for _, field in ipairs({INTERVAL, CONCURRENCY, LEASED, ASKED, LIMIT, REST}) do add_number(lane[field]) end
found[#found + 1] = lane[WHY]
found[#found + 1] = failing(lane) and string.format("%.17g", credit(lane)) or ""
local ordered = lane[ORDERED] or {}
add_number(#ordered)
for i = 1, #ordered do add_number(ordered[i]) end
local claims = lane[CLAIMS]
for at = 1, #claims, CLAIM_SIZE do
  local job = job_of(claims[at + CLAIM_OWNER])
  if counts(claims, at) and not job.over then
    found[#found + 1] = job.prefix
    for i = at + CLAIM_AT_LEAST, at + CLAIM_PLACES do add_number(claims[i + CLAIM_OWNER]) end
  end
end
return found
