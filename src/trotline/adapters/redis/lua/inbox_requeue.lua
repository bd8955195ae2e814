#!lua
-- Parked entries wait again, behind all others.
--   KEYS[1] name   ARGV[2] how many at most   ARGV[3] LEFT or RIGHT: the end with the oldest
--   returns their number
--
-- uses clock: call
-- uses inbox: name parked kind_of

if kind_of() then return 0 end
local found = call("XRANGE", parked, "-", "+", "COUNT", ARGV[2])
for _, item in ipairs(found) do
  local id, fields = unpack(item, 1, 2)
  local _, _, _, entry = unpack(fields, 1, 4)
  call(ARGV[3] == "RIGHT" and "LPUSH" or "RPUSH", name, entry)
  call("XDEL", parked, id)
end
return #found
