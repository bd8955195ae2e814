#!lua flags=allow-oom
-- Take the oldest entries of an inbox as a batch. Batches of silent readers go back first.
--   KEYS[1] name   ARGV[2] batch   ARGV[3] how many at most   ARGV[4] how many bytes are enough
--   ARGV[5] bytes of the largest entry   ARGV[6] LEFT or RIGHT: the end with the oldest   ARGV[7] held for
--   returns what is wrong with its keys, or "", how many were parked as too large, and the entries
--
-- uses clock: call now
-- uses inbox: name taking_key batches parked kind_of return_batch

-- Batches that go back in one call; the others in the next one.
local SWEPT = 10

local wrong = kind_of()
if wrong then return {wrong, 0} end

local batch, most, enough = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local largest, side, silent = tonumber(ARGV[5]), ARGV[6], now - tonumber(ARGV[7])

for _, old in ipairs(call("ZRANGEBYSCORE", batches, "-inf", silent, "LIMIT", 0, SWEPT)) do return_batch(old, side) end

local taking = taking_key(batch)
local found, bytes = {"", 0}, 0
for _ = 1, most do
  if bytes >= enough then break end
  local entry = call("LMOVE", name, taking, side, "LEFT")
  if not entry then break end
  if #entry > largest then
    call("LPOP", taking)
    call("XADD", parked, "*", "why", "is larger than " .. ARGV[5] .. " bytes", "entry", entry)
    found[2] = found[2] + 1
  else
    found[#found + 1] = entry
  end
  bytes = bytes + #entry
end
if #found > 2 then call("ZADD", batches, now, batch) end
return found
