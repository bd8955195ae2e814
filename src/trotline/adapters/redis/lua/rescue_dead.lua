#!lua flags=allow-oom
-- Somebody of another job waits for places that workers of this one hold who are silent for long.
--   KEYS[1] P job     gives how many leases went back
--
-- uses job: close_books
-- uses ready_lanes: write_lanes
-- uses worker_leases: rescue_dead

local rescued = rescue_dead()
write_lanes()
close_books()
return rescued
