-- A queue per route (rules/route_queues.py): of a job with such queues, a level has the number of the queue in it.
--
-- uses job_counters: floor
-- uses shared_lanes: SPLIT
-- exports: queue_of plain_level levels_of

local HALF = QUEUE_SPAN / 2

-- The number of the queue of a level.
function queue_of(level)
  return SPLIT and floor((level + HALF) / QUEUE_SPAN) or 0
end

-- The level without its queue.
function plain_level(level)
  return SPLIT and (level + HALF) % QUEUE_SPAN - HALF or level
end

-- The first and the last level of a queue.
function levels_of(queue)
  return queue * QUEUE_SPAN - HALF, (queue + 1) * QUEUE_SPAN - HALF - 1
end
