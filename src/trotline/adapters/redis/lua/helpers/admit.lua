-- Mark as seen and enqueue, atomically: otherwise a crash could lose URLs for ever.
--
-- tasks is flat; layouts.py names the values of one (NewTask). With owners, task i is admitted only if accepted[owners[i]].
--
-- uses clock: call now
-- uses job_books: book reopened many tally
-- uses shared_lanes: SHARED
-- uses job_lanes: LANES QUEUE lanes half add_own read_lane has_level fetch load_lanes touch
-- uses priority_levels: open_level end_of wait_in
-- uses chains: is_step chains
-- uses shelf: shelve
-- uses seen: seen_has seen_add seen_close
-- exports: admit enqueue

local function drains(lane)
  return book.state == "draining" or (lane and lane[STATE] == DRAINING)
end

-- Returns the admissions, and the positions of new tasks.
local function sift(names, tasks, owners, accepted)
  local answers, fresh, count = {}, {}, 0
  local draining = book.state == "draining" or book.draining > 0
  if draining then load_lanes(names) end
  local at = 1 - TASK_SIZE
  for i = 1, #tasks / TASK_SIZE do
    at = at + TASK_SIZE
    if not owners or accepted[owners[i]] then
      if draining and drains(lanes[names[tasks[at + TASK_LANE]]]) then
        answers[i] = "d"
        if not seen_has(tasks[at + TASK_FINGERPRINT], tasks[at + TASK_SPREAD], tasks[at + TASK_BLOB]) then
          answers[i] = "r"
          tally("refused: draining", 1)
        end
      elseif seen_add(tasks[at + TASK_FINGERPRINT], tasks[at + TASK_SPREAD], tasks[at + TASK_BLOB]) then
        answers[i] = "n"
        count = count + 1
        fresh[count] = at
      else
        answers[i] = "d"
      end
    end
  end
  seen_close()
  return answers, fresh
end

-- Create the lanes and levels that the new tasks need. Usually all of them exist: then nothing is unpacked or written.
local function prepare(names, tasks, fresh)
  local own = fetch(LANES, names)
  local places, opened = {}, {}
  for i = 1, #fresh do
    local at = fresh[i]
    local number = tasks[at + TASK_LANE]
    if not places[number] then
      local name, known = names[number], own[number]
      local whole_ = lanes[name] and not half[name]
      if whole_ or not known or tasks[at + TASK_DUE] > now or not has_level(known, tasks[at + TASK_LEVEL]) then
        places[number] = true
        if half[name] then
          add_own(lanes[name], known)
          half[name] = nil
        elseif not whole_ then
          opened[#opened + 1] = number
        end
      end
    end
  end
  local wanted = {}
  for i = 1, #opened do wanted[i] = names[opened[i]] end
  local shared = fetch(SHARED, wanted)
  for i = 1, #opened do read_lane(wanted[i], own[opened[i]], shared[i]) end
  for i = 1, #fresh do
    local at = fresh[i]
    if places[tasks[at + TASK_LANE]] and tasks[at + TASK_DUE] <= now then
      local lane = lanes[names[tasks[at + TASK_LANE]]]
      touch(lane)
      open_level(lane, tasks[at + TASK_LEVEL])
    end
  end
end

-- Steps behind others of their chain wait there: returns those that are queued.
local function without_listed(names, tasks, fresh)
  local queued = {}
  for i = 1, #fresh do
    local at = fresh[i]
    local blob, lane = tasks[at + TASK_BLOB], names[tasks[at + TASK_LANE]]
    if not is_step(blob) or not chains().join(lane, tasks[at + TASK_LEVEL], blob, tasks[at + TASK_DUE]) then
      queued[#queued + 1] = at
    end
  end
  return queued
end

-- Put tasks into their queues.
function enqueue(names, tasks, fresh)
  prepare(names, tasks, fresh)
  -- Where most tasks have a queue of their own, looking for those that share one costs more than it saves.
  local alone = 2 * #names > #fresh
  local pushes = {}
  for i = 1, #fresh do
    local at = fresh[i]
    local level, due, blob = tasks[at + TASK_LEVEL], tasks[at + TASK_DUE], tasks[at + TASK_BLOB]
    local name = names[tasks[at + TASK_LANE]]
    if due > now then
      wait_in(lanes[name], level, blob, due)
    elseif alone then
      call("RPUSH", QUEUE .. name .. end_of(level), blob)
    else
      local key = QUEUE .. name .. end_of(level)
      local push = pushes[key]
      if push then push[#push + 1] = blob else pushes[key] = {blob} end
    end
  end
  for key, push in pairs(pushes) do many("RPUSH", key, push) end
end

-- chained: some of them may have a chain. name: unique for this call, and mine: the caller publishes what it puts, for a
-- brokered frontier. Returns the admissions, and its parcels (helpers/shelf.lua).
function admit(names, tasks, chained, name, mine, owners, accepted)
  local answers, fresh = sift(names, tasks, owners, accepted)
  local made = ""
  if #fresh == 0 then return answers, made end
  book.waiting = book.waiting + #fresh
  book.entered = book.entered + #fresh
  reopened = true
  if chained then fresh = without_listed(names, tasks, fresh) end
  if book.shelf then fresh, made = shelve(names, tasks, fresh, name, mine) end
  enqueue(names, tasks, fresh)
  return answers, made
end
