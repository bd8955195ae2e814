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

local ROOM, FACTOR = 128, 3
local added, leases = {}, 0
local first, count, wait, apart = 0, 0, 0, 0

local function close_group()
  if count > 0 then added[#added + 1] = pack_(STARTS_FORM, first, count, now, wait, apart) end
end

-- Leases with these tokens (the first one, and the number) start at start, start + interval, ... Those of lanes that start
-- one task now are one group: a broad crawl has hundreds of them in a call.
function add_starts(token, number, start, interval)
  local its_wait, its_apart = start - now, number > 1 and interval or 0
  leases = leases + number
  if count > 0 and its_wait == wait and its_apart == 0 and apart == 0 then
    count = count + number
    return
  end
  close_group()
  first, count, wait, apart = token, number, its_wait, its_apart
end

-- The records of leases that the worker still has, and the number of their leases.
local function of_use(held, records, shards)
  local tokens, kept, listed, at = call("HKEYS", held), {}, 0, 1
  for i = 1, #tokens do tokens[i] = unpack_(TOKEN_FORM, tokens[i]) end
  table.sort(tokens)
  for from = 1, #records, STARTS_BYTES do
    local token, number = unpack_(STARTS_FORM, records, from)
    while tokens[at] and tokens[at] < token do at = at + 1 end
    if tokens[at] and tokens[at] < token + number * shards then
      kept[#kept + 1] = sub(records, from, from + STARTS_BYTES - 1)
      listed = listed + number
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
  close_group()
  call("HSET", P .. "starts", worker, pack_(">I4", listed + leases) .. records .. table.concat(added))
end
