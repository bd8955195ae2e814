#!lua flags=allow-oom
-- needs: job
-- Seeding is over.
--   KEYS[1] P job

call("HSET", JOB, "sealed", "1")
book.sealed = true
close_books()
return 1
