#!lua
-- Parked entries wait again, behind all others.
--   KEYS[1] name   ARGV[1] how many at most   ARGV[2] LEFT or RIGHT: the end with the oldest
--   returns their number
--
-- uses inbox: call name parked kind_of

if kind_of() then return 0 end
local found = call("XRANGE", parked, "-", "+", "COUNT", ARGV[1])
for _, item in ipairs(found) do
  local id, fields = item[1], item[2]
  call(ARGV[2] == "RIGHT" and "LPUSH" or "RPUSH", name, fields[4])
  call("XDEL", parked, id)
end
return #found
