-- The time of a call, in seconds. ARGV[1] is the time of a test's clock, or "".
--
-- exports: call now

call = redis.call
now = tonumber(ARGV[1])
if not now then
  local seconds, micros = unpack(call("TIME"), 1, 2)
  now = tonumber(seconds) + tonumber(micros) / 1e6
end
