-- New tasks of a brokered frontier wait on shelves: queues of a broker (rules/broker_shelves.py, ports/broker_books.py).
--
--   P job        shelf      1: new tasks are shelved     shelved   number of tasks that are     parcels   number of parcels ever made
--   P parcels    hash  id of a parcel -> lane and blob of each of its tasks (SHELVED_FORM), until it is published
--   P unsent     zset  id of a parcel that is not published -> when a client took it to do that; if none did, its turn: 1, 2, 3, ...
--   P shelved    hash  id of a parcel -> number of its tasks, shelf; until it is moved to the queues
--   P shelves    hash  shelf -> number of parcels that were published and not moved
--   P onshelf    hash  lane -> number of its tasks on main shelves
--   P overflow   hash  lane -> number of its tasks on the shelves of its group     P over:GROUP  set of such lanes
--
-- A task is shelved once: what comes back (retries, rescued leases) and what is delayed, large or in a chain stays here.
--
-- uses clock: call now
-- uses job_counters: floor pack_ JOB P many
-- uses job_lanes: fetch
-- uses chains: is_step
-- uses route_queues: plain_level
-- exports: shelve count_off group_of

local bands = {}

local function band_of(level)
  if bands[level] then return bands[level] end
  local priority, band = floor(plain_level(level) / 2), 0
  for limit in string.gmatch(SHELF_BANDS, "%d+") do
    if priority >= tonumber(limit) then band = band + 1 end
  end
  bands[level] = band
  return band
end

function group_of(lane)
  return tonumber(string.sub(redis.sha1hex(lane), 1, 6), 16) % OVERFLOWS
end

-- Which tasks go to which parcel. Returns the parcels, and the positions of tasks that are not shelved.
local function sort_out(names, tasks, fresh, on, over)
  local parcels, open, others = {}, {}, {}
  for i = 1, #fresh do
    local at = fresh[i]
    local blob, number = tasks[at + TASK_BLOB], tasks[at + TASK_LANE]
    if tasks[at + TASK_DUE] > now or #blob > PARCEL_BYTES or is_step(blob) then
      others[#others + 1] = at
    else
      local shelf = "b" .. band_of(tasks[at + TASK_LEVEL])
      -- A lane goes on in its overflow until that is empty: first come, first served.
      if (over[number] or 0) > 0 or (on[number] or 0) >= LANE_SHARE then
        shelf = "o" .. group_of(names[number]) .. shelf
        over[number] = (over[number] or 0) + 1
      else
        on[number] = (on[number] or 0) + 1
      end
      local parcel = open[shelf]
      if not parcel or parcel.count >= PARCEL_TASKS or parcel.bytes + #blob > PARCEL_BYTES then
        parcel = {shelf = shelf, tasks = {}, places = {}, count = 0, bytes = 0}
        open[shelf] = parcel
        parcels[#parcels + 1] = parcel
      end
      parcel.tasks[parcel.count + 1] = pack_(SHELVED_FORM, #blob, #names[number], names[number]) .. blob
      parcel.places[parcel.count + 1] = (at - 1) / TASK_SIZE + 1
      parcel.count, parcel.bytes = parcel.count + 1, parcel.bytes + #blob
    end
  end
  return parcels, others
end

local function numbers(found)
  local values = {}
  for i, value in ipairs(found) do values[i] = tonumber(value or 0) end
  return values
end

local function write_counts(key, names, before, after, overflow)
  local changed = {}
  for number, count in pairs(after) do
    if count ~= before[number] then
      changed[#changed + 1] = names[number]
      changed[#changed + 1] = count
      if overflow then call("SADD", P .. "over:" .. group_of(names[number]), names[number]) end
    end
  end
  many("HSET", key, changed)
end

-- Shelve new tasks; name is unique for this call. Returns the positions of those that are not shelved, and of a caller
-- that publishes (mine) a line per parcel: id, shelf, numbers of its tasks in the call. So it need not read them back.
function shelve(names, tasks, fresh, name, mine)
  local on, over = fetch(P .. "onshelf", names), fetch(P .. "overflow", names)
  local on_before, over_before = numbers(on), numbers(over)
  on, over = numbers(on), numbers(over)
  local parcels, others = sort_out(names, tasks, fresh, on, over)
  if #parcels == 0 then return others, "" end
  local turn = call("HINCRBY", JOB, "parcels", #parcels) - #parcels
  local bodies, counts, unsent, made = {}, {}, {}, {}
  for i = 1, #parcels do
    local parcel, id = parcels[i], name .. "." .. i
    bodies[2 * i - 1], bodies[2 * i] = id, table.concat(parcel.tasks)
    counts[2 * i - 1], counts[2 * i] = id, parcel.count .. " " .. parcel.shelf
    unsent[2 * i - 1], unsent[2 * i] = mine and now or turn + i, id
    if mine then made[i] = "\n" .. id .. " " .. parcel.shelf .. " " .. table.concat(parcel.places, " ") end
  end
  many("HSET", P .. "parcels", bodies)
  many("HSET", P .. "shelved", counts)
  many("ZADD", P .. "unsent", unsent)
  write_counts(P .. "onshelf", names, on_before, on)
  write_counts(P .. "overflow", names, over_before, over, true)
  call("HINCRBY", JOB, "shelved", #fresh - #others)
  return others, table.concat(made)
end

-- So many tasks of a lane left their shelf.
function count_off(lane, count, overflow)
  local key = P .. (overflow and "overflow" or "onshelf")
  if call("HINCRBY", key, lane, -count) <= 0 then
    call("HDEL", key, lane)
    if overflow then call("SREM", P .. "over:" .. group_of(lane), lane) end
  end
end
