-- The graveyard: tasks are buried with their reason (dequeued_tasks.lua), and with a step the rest of its chain.
--
-- uses clock: call
-- uses job_counters: sub unpack_ P book
-- uses job_lanes: LATE touch
-- uses priority_levels: close_level queue
-- uses dequeued_tasks: inter
-- uses chains: is_step chains
-- exports: bury bury_waiting

-- The caller has removed the task from its queue or lease, and from that counter.
function bury(lane, level, blob, why, detail, name)
  inter(lane, level, blob, why, detail, name)
  if is_step(blob) then chains().failed(lane, level, blob, why) end
end

-- Bury a lane's waiting tasks, up to a limit. Returns their number.
function bury_waiting(lane, why, limit)
  local buried, looks, name = 0, 0, "dead: " .. why
  touch(lane)
  -- A level may be empty, so the number of levels is limited, too.
  while lane[LEVELS] > 0 and buried < limit and looks < limit do
    looks = looks + 1
    local level = lane[LEVELS + 1]
    local blobs = call("LPOP", queue(lane, level), limit - buried) or {}
    for i = 1, #blobs do bury(lane[NAME], level, blobs[i], why, "", name) end
    buried = buried + #blobs
    if buried < limit then close_level(lane, LEVELS + 1) end
  end
  if buried < limit and lane[LEVELS] == 0 then
    local late = call("ZPOPMIN", LATE .. lane[NAME], limit - buried)
    for i = 1, #late, 2 do
      local level, at = unpack_("<i4", late[i])
      bury(lane[NAME], level, sub(late[i], at), why, "", name)
      buried = buried + 1
    end
    book.delayed = book.delayed - #late / 2
    if buried < limit then
      call("ZREM", P .. "due", lane[NAME])
      lane[DELAYED] = false
    end
  end
  book.waiting = book.waiting - buried
  return buried
end
