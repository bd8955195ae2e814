#!lua flags=allow-oom
-- Set the state or the pace of the job or of one of its lanes.
--   KEYS[1] P job     ARGV[2] verb: "running", "paused", "draining", "cancelled" or "pace"     ARGV[3] lane, or ""
--   ARGV[4] msgpack: for "pace" the bounds of that lane for all jobs, or nothing to reset them
--   returns the number of buried tasks ("cancelled" for a lane), and 1 if there are more to bury
--
-- uses clock: call now
-- uses job_counters: JOB book woke close_books
-- uses lane_sharing: order
-- uses shared_lanes: change wake_others
-- uses job_lanes: lanes load_lanes touch
-- uses priority_levels: has_waiting
-- uses ready_lanes: write_lanes
-- uses graveyard: bury_waiting
-- uses chains: chains

local STATES = {running = RUNNING, paused = PAUSED, draining = DRAINING}
local BURIED = 500

local verb, name = ARGV[2], ARGV[3]
if name == "" then
  call("HSET", JOB, "state", verb, "state_at", string.format("%.17g", now))
  book.state = verb
  woke = true
  close_books()
  return {0, 0}
end

load_lanes({name})
local lane = lanes[name]
touch(lane)
-- The lane's place in the queue of ready lanes is outdated.
for at = LEVELS + 1, LEVELS + 2 * lane[LEVELS], 2 do lane[at + STAMP] = 0 end
lane[WAKE] = 0
local buried, more = 0, 0
if verb == "pace" then
  order(lane, ARGV[4] ~= "" and cmsgpack.unpack(ARGV[4]))
  change(lane)
  wake_others(lane, true)
elseif verb == "cancelled" then
  buried = bury_waiting(lane, "cancelled", BURIED)
  local _, unfinished = chains().tend()
  if has_waiting(lane) or unfinished then more = 1 end
else
  if verb == "running" and lane[STATE] == RUNNING and lane[REST] > now then
    -- One probe goes out, and the next rest is longer if that fails.
    lane[REST] = now
    change(lane)
    wake_others(lane, true)
  end
  if lane[STATE] == DRAINING then book.draining = book.draining - 1 end
  if verb == "draining" then book.draining = book.draining + 1 end
  lane[STATE] = STATES[verb]
  local mine = lane[MINE]
  if verb == "paused" and mine > 0 then
    -- Its bounds do not apply, and it waits for no turn.
    lane[CLAIMS][mine + CLAIM_USED], lane[CLAIMS][mine + CLAIM_WANTS] = 0, 0
    change(lane)
  end
end
write_lanes()
close_books()
return {buried, more}
