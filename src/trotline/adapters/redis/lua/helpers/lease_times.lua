-- When leases were handed out, and when they may start: only operators read it (in_flight.py).
--
--   P starts    hash  W -> number of leases in it (4 bytes), and a record (STARTS in layouts.py) for each group of
--                     leases with consecutive tokens whose starts are the same time apart
--
-- A record stays when its leases end: settling costs nothing. They are cleared when most of them are of no use.
--
-- uses clock: call now
-- uses job_books: sub pack_ unpack_ P
-- exports: keep_starts add_starts

local ROOM, FACTOR = 64, 3
local added, leases = {}, 0

-- count leases from this token on, every shards-th token, start at start, start + interval, ...
function add_starts(token, count, start, interval)
  added[#added + 1] = pack_(STARTS_FORM, token, count, now, start - now, count > 1 and interval or 0)
  leases = leases + count
end

local function some_held(held, record, shards)
  local token, count = unpack_(STARTS_FORM, record)
  -- The last ones first: they end last.
  for i = count - 1, 0, -1 do
    if call("HEXISTS", held, pack_(TOKEN_FORM, token + i * shards)) == 1 then return count end
  end
  return nil
end

-- The records of leases that the worker still has, and the number of their leases.
local function of_use(held, records, shards)
  local kept, listed = {}, 0
  for at = 1, #records, STARTS_BYTES do
    local record = sub(records, at, at + STARTS_BYTES - 1)
    local count = some_held(held, record, shards)
    if count then
      kept[#kept + 1] = record
      listed = listed + count
    end
  end
  return table.concat(kept), listed
end

-- Write those of this call. held: the key of the worker's leases, which has them.
function keep_starts(worker, held, shards)
  local kept = call("HGET", P .. "starts", worker)
  local records, listed = "", 0
  -- Anything else was written by another program.
  if kept and #kept % STARTS_BYTES == 4 then records, listed = sub(kept, 5), unpack_(">I4", kept) end
  if listed > FACTOR * call("HLEN", held) + ROOM then records, listed = of_use(held, records, shards) end
  call("HSET", P .. "starts", worker, pack_(">I4", listed + leases) .. records .. table.concat(added))
end
