-- Other jobs that share a lane with this one, as far as a call has to know them.
--
--   S jobs    hash  number of a job -> its prefix P
--
-- uses clock: call
-- uses job_counters: unpack_ P S book
-- exports: this_job job_of

local jobs = {}
this_job = {prefix = P, gone = false, over = false}

-- Its prefix; whether it was forgotten; and whether there is nothing left to do in it here.
function job_of(number)
  if number == book.number then return this_job end
  local job = jobs[number]
  if not job then
    local prefix = call("HGET", S .. "jobs", number)
    local packed, state, sealed
    if prefix then packed, state, sealed = unpack(call("HMGET", prefix .. "job", "books", "state", "sealed"), 1, 3) end
    local waiting, leased = 0, 0
    if packed then waiting, leased = unpack_(BOOKS_FORM, packed) end
    job = {prefix = prefix, gone = not packed}
    job.over = job.gone or state == "cancelled" or state == "paused" or (sealed == "1" and waiting + leased == 0)
    jobs[number] = job
  end
  return job
end
