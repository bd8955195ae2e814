#!lua
-- A cached value, or whether this client should fetch it.
--   trotline:{cache}:NAME        hash  name -> two doubles (good until, put at), then the value
--   trotline:{cache}:NAME:until  zset  name -> good until
--   trotline:{cache}:NAME:bytes  string  of all values
--   trotline:{cache}:NAME:turn:N string  the client that fetches N; expires
--
--   KEYS[1] the hash   ARGV[1] time of a test's clock, or ""   ARGV[2] name   ARGV[3] client
--   ARGV[4] milliseconds until a fetch times out
--   returns value, age, seconds left | "yours" | "wait"
--
-- uses clock: call now

local kept = call("HGET", KEYS[1], ARGV[2])
if kept then
  local ends, put = struct.unpack(">dd", kept)
  if ends > now then
    return {string.sub(kept, 17), tostring(math.max(0, now - put)), tostring(ends - now)}
  end
end
local turn = KEYS[1] .. ":turn:" .. ARGV[2]
if call("SET", turn, ARGV[3], "NX", "PX", ARGV[4]) or call("GET", turn) == ARGV[3] then return "yours" end
return "wait"
