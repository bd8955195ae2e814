-- The keys of an inbox, and how a batch goes back.
--   NAME                  list   entries, written by other programs
--   {NAME}:taking:BATCH   list   entries of a batch, the last one taken first
--   {NAME}:batches        zset   batch -> since when it is held
--   {NAME}:parked         stream why, entry
--
-- uses clock: call
-- exports: name taking_key batches parked kind_of return_batch

name = KEYS[1]
batches, parked = "{" .. name .. "}:batches", "{" .. name .. "}:parked"

function taking_key(batch) return "{" .. name .. "}:taking:" .. batch end

-- The kind of a key that is not what it should be; false if all are right. Checked before the first write.
function kind_of()
  for key, right in pairs({[name] = "list", [batches] = "zset", [parked] = "stream"}) do
    local kind = call("TYPE", key)["ok"]
    if kind ~= right and kind ~= "none" then return key .. " is a " .. kind end
  end
  return false
end

-- Entries in their old order: the one that was taken first is at the end from which readers take.
function return_batch(batch, side)
  local taking = taking_key(batch)
  while call("LMOVE", taking, name, "LEFT", side) do end
  call("ZREM", batches, batch)
end
