-- Other jobs, as far as a call has to know them: whoever shares a lane with this one.
--
--   S jobs    hash  number of a job -> its prefix P

local jobs, this_job = {}, {prefix = P, gone = false, over = false}

-- Its prefix; whether it was forgotten; and whether there is nothing to do in it now: a paused job takes no turns.
local function job_of(number)
  if number == book.number then return this_job end
  local job = jobs[number]
  if not job then
    local prefix = call("HGET", S .. "jobs", number)
    local told = prefix and call("HMGET", prefix .. "job", "books", "state", "sealed") or {}
    local waiting, leased = 0, 0
    if told[1] then waiting, leased = unpack_("<dd", told[1]) end
    job = {prefix = prefix, gone = not told[1]}
    job.over = job.gone or told[2] == "cancelled" or told[2] == "paused" or (told[3] == "1" and waiting + leased == 0)
    jobs[number] = job
  end
  return job
end
