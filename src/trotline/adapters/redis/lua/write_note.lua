#!lua
-- Write a note, if it still has the version that its writer read.
--   KEYS[1] P job     ARGV[2] name     ARGV[3] data     ARGV[4] version, 0 if there is none     ARGV[5] this call's name
--   returns 1, or 0 if it has another version
--
--   P notes    hash  name -> version, the call that wrote it, data
--
-- uses clock: call
-- uses job_counters: sub pack_ unpack_ P

local name, data, expected, this_call = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local kept = call("HGET", P .. "notes", name)
local version, last_call = 0, ""
-- What another program wrote is not a note (see _opened in notes.py).
if kept and #kept >= NOTE_BYTES then
  local its_version, size, at = unpack_(NOTE_FORM, kept)
  if its_version >= 1 and #kept >= NOTE_BYTES + size then version, last_call = its_version, sub(kept, at, at + size - 1) end
end
-- A repeat after a lost reply.
if last_call == this_call then return 1 end
if version ~= expected then return 0 end
call("HSET", P .. "notes", name, pack_(NOTE_FORM, version + 1, #this_call) .. this_call .. data)
return 1
