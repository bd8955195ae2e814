#!lua flags=allow-oom
-- A worker of another job waits for places that dead workers of this one hold.
--   KEYS[1] P job     gives how many leases went back
--
-- uses job: close_books
-- uses ready_lanes: write_lanes
-- uses worker_leases: rescue_dead

local rescued = rescue_dead()
write_lanes()
close_books()
return rescued
