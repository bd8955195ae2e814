#!lua flags=no-writes
-- The workers of the job.
--   KEYS[1] P job     returns now (microseconds), then a WorkerRow (lua_layouts.py) for each worker
--
-- uses clock: call now
-- uses job_counters: floor P

local rows = {floor(now * 1e6 + 0.5)}
local workers = call("ZRANGE", P .. "workers", 0, -1, "WITHSCORES")
for i = 1, #workers, 2 do
  local name = workers[i]
  local done, failed = unpack(call("HMGET", P .. "figures", "d" .. name, "f" .. name), 1, 2)
  for _, value in ipairs({
    name, floor(tonumber(workers[i + 1]) * 1e6 + 0.5), call("HLEN", P .. "held:" .. name), done or "0",
    failed or "0", call("HGET", P .. "about", name) or "",
  }) do
    rows[#rows + 1] = value
  end
end
return rows
