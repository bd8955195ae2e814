#!lua
-- Numbers for what many tasks of a job share (route, site, priority, ...): stored once, named by two bytes in a blob.
--   KEYS[1] P job     ARGV[1..] forms as msgpack     gives their numbers; 0 when there are too many kinds
--
--   P forms    hash  number -> form, and "=" form -> number

local MOST = 65000
local P = string.sub(KEYS[1], 1, -4)
local numbers = {}
for i, form in ipairs(ARGV) do
  local number = tonumber(redis.call("HGET", P .. "forms", "=" .. form))
  if not number then
    number = redis.call("HLEN", P .. "forms") / 2 + 1
    if number > MOST then
      number = 0
    else
      redis.call("HSET", P .. "forms", number, form, "=" .. form, number)
    end
  end
  numbers[i] = number
end
return numbers
