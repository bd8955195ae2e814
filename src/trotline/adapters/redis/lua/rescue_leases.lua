#!lua flags=allow-oom
-- Return leases of dead workers, for a worker of another job that waits for their places.
--   KEYS[1] P job     returns the number of returned leases
--
-- uses job_counters: close_books
-- uses ready_lanes: write_lanes
-- uses worker_leases: rescue_leases

local rescued = rescue_leases()
write_lanes()
close_books()
return rescued
