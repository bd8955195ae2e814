-- Mark as seen and enqueue, atomically: otherwise a crash could lose URLs for ever.
--
-- tasks is flat; lua_layouts.py names the values of one (NewTask). With owners, task i is not admitted if refused[owners[i]].
--
-- uses clock: call now
-- uses job_counters: book reopened many tally
-- uses job_lanes: QUEUE lanes load_lanes touch
-- uses priority_levels: open_level end_of wait_in
-- uses chains: is_step chains
-- uses broker_shelves: shelve
-- uses seen: seen_has seen_add seen_close
-- exports: admit enqueue

local function drains(lane)
  return book.state == "draining" or (lane and lane[STATE] == DRAINING)
end

-- Returns the admissions, and the positions of new tasks.
local function sift(names, tasks, owners, refused)
  local answers, fresh, count = {}, {}, 0
  local draining = book.state == "draining" or book.draining > 0
  if draining then load_lanes(names) end
  local at = 1 - TASK_SIZE
  for i = 1, #tasks / TASK_SIZE do
    at = at + TASK_SIZE
    if not owners or not refused[owners[i]] then
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

-- Tasks that are not due yet wait in their lanes, and levels that had no tasks are opened there.
local function enter_lanes(names, tasks, some)
  local wanted = {}
  for i = 1, #some do wanted[i] = names[tasks[some[i] + TASK_LANE]] end
  load_lanes(wanted)
  for i = 1, #some do
    local at, lane = some[i], lanes[wanted[i]]
    local level, due = tasks[at + TASK_LEVEL], tasks[at + TASK_DUE]
    if due > now then
      wait_in(lane, level, tasks[at + TASK_BLOB], due)
    else
      touch(lane)
      open_level(lane, level)
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

-- Put tasks into their queues. One that is not the first in its queue has its level open, and its lane is not even read.
function enqueue(names, tasks, fresh)
  -- Where most tasks have a queue of their own, looking for those that share one costs more than it saves.
  local alone = 2 * #names > #fresh
  local some, count, keys, firsts, pushes = {}, 0, {}, {}, {}
  for i = 1, #fresh do
    local at = fresh[i]
    local due = tasks[at + TASK_DUE]
    if due > now then
      count = count + 1
      some[count] = at
    else
      local key, blob = QUEUE .. names[tasks[at + TASK_LANE]] .. end_of(tasks[at + TASK_LEVEL]), tasks[at + TASK_BLOB]
      if alone then
        if call("RPUSH", key, blob) == 1 then
          count = count + 1
          some[count] = at
        end
      else
        local push = pushes[key]
        if push then
          push[#push + 1] = blob
        else
          pushes[key], keys[#keys + 1], firsts[#firsts + 1] = {blob}, key, at
        end
      end
    end
  end
  for i = 1, #keys do
    local push = pushes[keys[i]]
    if many("RPUSH", keys[i], push) == #push then
      count = count + 1
      some[count] = firsts[i]
    end
  end
  if count > 0 then enter_lanes(names, tasks, some) end
end

-- chained: some of them may have a chain. name: unique for this call, and mine: the caller publishes what it puts, for a
-- brokered frontier. Returns the admissions, and its parcels (helpers/broker_shelves.lua).
function admit(names, tasks, chained, name, mine, owners, refused)
  local answers, fresh = sift(names, tasks, owners, refused)
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
