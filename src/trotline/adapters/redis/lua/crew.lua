#!lua flags=no-writes
-- needs: job
-- Who works on the job.
--   KEYS[1] P job     gives now, then for each worker: name, when it was heard (microseconds), leases that it holds,
--   done, failed, what it tells of itself

local crew = {floor(now * 1e6 + 0.5)}
local heard = call("ZRANGE", P .. "workers", 0, -1, "WITHSCORES")
for i = 1, #heard, 2 do
  local name = heard[i]
  local figures = call("HMGET", P .. "figures", "d" .. name, "f" .. name)
  for _, value in ipairs({
    name, floor(tonumber(heard[i + 1]) * 1e6 + 0.5), call("HLEN", P .. "held:" .. name), figures[1] or "0",
    figures[2] or "0", call("HGET", P .. "about", name) or "",
  }) do
    crew[#crew + 1] = value
  end
end
return crew
