-- Seen and enqueued in one step: two steps lose URLs for ever.
--
-- tasks is flat, five values each: fingerprint (decimal), number of its lane in names, level, due, blob.
-- With owners, task i is admitted only if accepted[owners[i]].

local function admit(names, paces, tasks, owners, accepted)
  local answers, fresh = {}, {}
  if book.draining > 0 then load_lanes(names) end
  for i = 1, #tasks / 5 do
    local at = 5 * i
    if not owners or accepted[owners[i]] then
      local fingerprint = tasks[at - 4]
      local lane = lanes[names[tasks[at - 3]]]
      if book.state == "draining" or (lane and lane[STATE] == DRAINING) then
        if seen_has(fingerprint) then
          answers[i] = "d"
        else
          answers[i] = "r"
          tally("refused: draining", 1)
        end
      elseif seen_add(fingerprint) then
        answers[i] = "n"
        fresh[#fresh + 1] = at
      else
        answers[i] = "d"
      end
    end
  end
  if #fresh == 0 then return answers end

  local wanted = {}
  for i = 1, #fresh do wanted[i] = names[tasks[fresh[i] - 3]] end
  load_lanes(wanted, paces)
  local pushes = {}
  for i = 1, #fresh do
    local at = fresh[i]
    local lane, level, due, blob = lanes[wanted[i]], tasks[at - 2], tasks[at - 1], tasks[at]
    if due > now then
      wait_in(lane, level, blob, due)
    else
      touch(lane)
      count_level(lane, level, 1)
      local push = pushes[lane]
      if push and push[1] == level then
        push[#push + 1] = blob
      else
        if push then many("RPUSH", queue(lane, push[1]), {unpack(push, 2)}) end
        pushes[lane] = {level, blob}
      end
    end
  end
  for lane, push in pairs(pushes) do
    if #push == 2 then
      call("RPUSH", queue(lane, push[1]), push[2])
    else
      many("RPUSH", queue(lane, push[1]), {unpack(push, 2)})
    end
  end
  book.waiting = book.waiting + #fresh
  book.entered = book.entered + #fresh
  reopened = true
  return answers
end
