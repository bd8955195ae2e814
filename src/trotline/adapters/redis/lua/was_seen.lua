#!lua flags=no-writes
-- Was a task ever admitted?
--   KEYS[1] P job     ARGV[2] fingerprint     ARGV[3] its spread     returns 1 if so
--
-- uses seen: seen_has

return seen_has(ARGV[2], tonumber(ARGV[3])) and 1 or 0
