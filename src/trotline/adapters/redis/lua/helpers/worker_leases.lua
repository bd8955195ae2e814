-- The leases of workers, and their return when a worker leaves or dies.
--
--   P held:W    hash  token (6 bytes) -> parcel, see leased_parts in dequeued_tasks.lua
--   P workers   zset  W -> last heartbeat
--   P about     hash  W -> WorkerInfo
--   P figures   hash  d..W, f..W -> leases it ended as done / as retried or buried
--   P calls     hash  l..W, s..W -> its last lease and settle, for the case that the reply was lost
--
-- uses clock: call now
-- uses job_counters: pack_ unpack_ P book many tally
-- uses shared_lanes: run
-- uses pool_members: members
-- uses job_lanes: lanes load_lanes touch
-- uses priority_levels: open_level queue
-- uses dequeued_tasks: leased_parts counts_of with_counts
-- uses graveyard: bury
-- exports: HELD latest_first give_back held_by take_from forget_worker rescue_leases

local RESCUED, DEAD_AT_ONCE = 1000, 20
HELD = P .. "held:"

-- Those that were handed out last go back first: they go to the head of their queues.
function latest_first(held)
  table.sort(held, function(one, other) return one.token > other.token end)
end

-- The member that a lease was to go out through, as it was. is_silent: its worker may still send.
local function return_unused(name, packed, is_silent)
  members().come_back(name, packed, RESULT_UNUSED, 0, 0)
  if is_silent then members().rest_of_dead(name, packed) end
end

-- Tasks go back to the head of their queues, those that were handed out first before the others.
-- changed(token, blob) may give another blob, or nil if it has buried the task. is_silent: the worker was, for too long.
function give_back(held, changed, is_silent)
  latest_first(held)
  local names, starts, levels = {}, {}, {}
  for i = 1, #held do levels[i], names[i], starts[i] = unpack_(PARCEL_FORM, held[i].parcel) end
  load_lanes(names)
  for i = 1, #held do
    local level, name = levels[i], names[i]
    local lane, blob, member = lanes[name], leased_parts(held[i].parcel, name, starts[i])
    touch(lane)
    run(lane, -1)
    book.leased = book.leased - 1
    if member then return_unused(name, member, is_silent) end
    if changed then blob = changed(held[i].token, name, level, blob) end
    if blob then
      call("LPUSH", queue(lane, level), blob)
      open_level(lane, level)
      book.waiting = book.waiting + 1
    end
  end
end

-- What it holds, or (most) about that many of it; and whether there is more.
function held_by(worker, most)
  local key, held = HELD .. worker, {}
  local cursor, flat = "0", nil
  local all = not most or call("HLEN", key) <= most
  repeat
    if all then
      flat = call("HGETALL", key)
    else
      cursor, flat = unpack(call("HSCAN", key, cursor, "COUNT", most), 1, 2)
    end
    for i = 1, #flat, 2 do
      local token = unpack_(TOKEN_FORM, flat[i])
      held[#held + 1] = {token = token, parcel = flat[i + 1]}
    end
  until all or cursor == "0" or #held >= most
  return held, not all and call("HLEN", key) > #held
end

function take_from(worker, held)
  local fields = {}
  for i = 1, #held do fields[i] = pack_(TOKEN_FORM, held[i].token) end
  if #fields > 0 then many("HDEL", HELD .. worker, fields) end
end

function forget_worker(worker)
  call("DEL", HELD .. worker, P .. "starts:" .. worker)
  call("ZREM", P .. "workers", worker)
  call("HDEL", P .. "about", worker)
  call("HDEL", P .. "figures", "d" .. worker, "f" .. worker)
  call("HDEL", P .. "calls", "l" .. worker, "s" .. worker)
end

local function rescue(worker)
  local held, more = held_by(worker, RETURNED_AT_ONCE)
  local rescued = 0
  take_from(worker, held)
  give_back(held, function(_, lane, level, blob)
    local attempt, deaths, kills = counts_of(blob)
    if attempt and deaths >= DEATHS then
      local why = "killed: " .. DEATHS .. " workers died while they held it"
      bury(lane, level, blob, why, "", "dead: " .. why)
      return nil
    end
    rescued = rescued + 1
    if attempt then return with_counts(blob, attempt + 1, deaths + 1, kills) end
    return blob
  end, true)
  if rescued > 0 then tally("rescued", rescued) end
  if not more then forget_worker(worker) end
  return #held
end

-- Return leases of workers without a heartbeat. Returns their number.
function rescue_leases()
  local dead = call("ZRANGEBYSCORE", P .. "workers", "-inf", string.format("(%.17g", now - DEAD_AFTER), "LIMIT", 0, DEAD_AT_ONCE)
  local rescued = 0
  for _, each in ipairs(dead) do
    if rescued < RESCUED then rescued = rescued + rescue(each) end
  end
  return rescued
end
