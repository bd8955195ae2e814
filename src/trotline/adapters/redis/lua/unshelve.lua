#!lua
-- Delivered parcels move from their shelves to the queues, each of them once (helpers/broker_shelves.lua).
--   KEYS[1] P job
--   ARGV[2] msgpack: names of lanes, tasks (see admit.lua), and for each parcel its id and the number of its tasks
--   returns one letter per parcel: m(oved), k(nown: moved before, or unknown), x (another number of tasks)
--
-- uses clock: call
-- uses job_counters: JOB P close_books
-- uses ready_lanes: write_lanes
-- uses admit: enqueue
-- uses broker_shelves: count_off

local names, tasks, parcels = unpack(cmsgpack.unpack(ARGV[2]), 1, 3)
local letters, fresh, at, moved = {}, {}, 1, 0

local function leave(id, shelf)
  call("HDEL", P .. "shelved", id)
  call("HDEL", P .. "parcels", id)
  -- One that is not confirmed as published was not counted.
  if call("ZREM", P .. "unsent", id) == 0 and call("HINCRBY", P .. "shelves", shelf, -1) <= 0 then
    call("HDEL", P .. "shelves", shelf)
  end
end

local left = {[true] = {}, [false] = {}}
for i = 1, #parcels, 2 do
  local id, count = parcels[i], parcels[i + 1]
  local kept = call("HGET", P .. "shelved", id)
  local size, shelf = string.match(kept or "", "^(%d+) (%w+)$")
  if not size then
    letters[#letters + 1] = "k"
  elseif tonumber(size) ~= count then
    letters[#letters + 1] = "x"
  else
    letters[#letters + 1] = "m"
    leave(id, shelf)
    local counts = left[string.sub(shelf, 1, 1) == "o"]
    for k = 0, count - 1 do
      local place = at + TASK_SIZE * k
      local name = names[tasks[place + TASK_LANE]]
      fresh[#fresh + 1] = place
      counts[name] = (counts[name] or 0) + 1
    end
    moved = moved + count
  end
  at = at + TASK_SIZE * count
end
if moved > 0 then
  for overflow, counts in pairs(left) do
    for name, count in pairs(counts) do count_off(name, count, overflow) end
  end
  call("HINCRBY", JOB, "shelved", -moved)
  enqueue(names, tasks, fresh)
  write_lanes()
  close_books()
end
return table.concat(letters)
