-- A lane of a job may be served sooner than it stands in line for: it is looked at by the job's next lease.
--
-- uses clock: call now
-- exports: LOOK wake_lane

LOOK = struct.pack("<i4I4", 0, 0)

function wake_lane(prefix, name)
  call("ZADD", prefix .. "rest", "LT", string.format("%d", now * 1000), LOOK .. name)
  if call("HGET", prefix .. "job", "idle") == "1" then
    call("HSET", prefix .. "job", "idle", "0")
    call("PUBLISH", prefix .. "news", "")
  end
end
