#!lua flags=allow-oom
-- Seeding is complete.
--   KEYS[1] P job
--
-- uses clock: call
-- uses job_counters: JOB book close_books

call("HSET", JOB, "sealed", "1")
book.sealed = true
close_books()
return 1
