-- When leases were handed out, and when they may start: only operators read it (in_flight.py).
--
--   P starts:W    string  a record (STARTS in lua_layouts.py) for each group of leases with consecutive tokens whose starts are
--                         the same time apart
--
-- Records are appended, without reading those before them: a string costs a script by its length. They stay when their
-- leases end: settling costs nothing. They are cleared when most of them are of no use.
--
-- uses clock: call now
-- uses job_counters: sub max pack_ unpack_ P
-- exports: keep_starts add_starts

local ROOM, FACTOR = 128, 3
-- Seconds.
local EXACT = 0.001
local added = {}
local first, count, wait, apart = 0, 0, 0, 0

local function close_group()
  if count > 0 then added[#added + 1] = pack_(STARTS_FORM, first, count, now, wait, apart) end
end

-- Leases with these tokens (the first one, and the number) start at start, start + interval, ... Those that go on with the
-- group before them are part of it: of lanes that start one task now, or of one lane through the members of a proxy pool.
function add_starts(token, number, start, interval)
  local its_wait, its_apart = start - now, number > 1 and interval or 0
  if number == 1 and count > 0 then
    if count == 1 then apart = its_wait - wait end
    if max(its_wait - wait - count * apart, wait + count * apart - its_wait) < EXACT then
      count = count + 1
      return
    end
  end
  close_group()
  first, count, wait, apart = token, number, its_wait, its_apart
end

-- The records of leases that the worker still has. Those that are no records were written by another program.
local function of_use(held, records, shards)
  local tokens, kept, at = call("HKEYS", held), {}, 1
  if #records % STARTS_BYTES ~= 0 then return table.concat(added) end
  for i = 1, #tokens do tokens[i] = unpack_(TOKEN_FORM, tokens[i]) end
  table.sort(tokens)
  for from = 1, #records, STARTS_BYTES do
    local token, number = unpack_(STARTS_FORM, records, from)
    while tokens[at] and tokens[at] < token do at = at + 1 end
    if tokens[at] and tokens[at] < token + number * shards then
      kept[#kept + 1] = sub(records, from, from + STARTS_BYTES - 1)
    end
  end
  return table.concat(kept)
end

-- Write those of this call. held: the key of the worker's leases, which has them.
function keep_starts(worker, held, shards)
  local key = P .. "starts:" .. worker
  close_group()
  local size = call("APPEND", key, table.concat(added))
  if size % STARTS_BYTES ~= 0
    or (size > ROOM * STARTS_BYTES and size > (ROOM + FACTOR * call("HLEN", held)) * STARTS_BYTES) then
    call("SET", key, of_use(held, call("GET", key), shards))
  end
end
