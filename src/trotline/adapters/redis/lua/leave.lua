#!lua flags=allow-oom
-- A worker stops: return its leases without counting an attempt, except for the page that killed it.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] token of the guilty lease, or ""     ARGV[4] why     ARGV[5] detail
--   returns the number of returned leases, and 1 if there are more
--
-- uses job_counters: close_books
-- uses ready_lanes: write_lanes
-- uses dequeued_tasks: counts_of with_counts
-- uses graveyard: bury
-- uses worker_leases: give_back held_by take_from forget_worker

local guilty, why, detail = tonumber(ARGV[3]), ARGV[4], ARGV[5]
local held, more = held_by(ARGV[2], RETURNED_AT_ONCE)
take_from(ARGV[2], held)
give_back(held, function(token, lane, level, blob)
  local attempt, deaths, kills = counts_of(blob)
  if token ~= guilty or not attempt then return blob end
  if kills + 1 < KILLS then return with_counts(blob, attempt + 1, deaths + 1, kills + 1) end
  local times = (kills + 1) .. " worker processes"
  bury(lane, level, blob, why, detail ~= "" and times .. "\n" .. detail or times, "dead: " .. why)
  return nil
end)
if not more then forget_worker(ARGV[2]) end
write_lanes()
close_books()
return {#held, more and 1 or 0}
