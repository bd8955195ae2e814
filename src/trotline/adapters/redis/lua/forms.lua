#!lua
-- Numbers for what many tasks of a job share (route, site, priority, ...): stored once, named by two bytes in a blob.
--   KEYS[1] P job     ARGV[1..] forms as msgpack     gives their numbers; 0 when there are too many kinds
--
--   P forms    hash  number -> form, and "=" form -> number

-- A number begins at the form's own hash: after a failover that forgot some, the same form gets the same number again,
-- and a client that still uses the old one is right.

if redis.call("EXISTS", KEYS[1]) == 0 then return redis.error_reply("NOJOB this server has no such job") end

local MOST = 65000
local P = string.sub(KEYS[1], 1, -4)
local numbers = {}
for i, form in ipairs(ARGV) do
  local number = tonumber(redis.call("HGET", P .. "forms", "=" .. form))
  if not number then
    if redis.call("HLEN", P .. "forms") / 2 >= MOST * 0.9 then
      number = 0
    else
      number = tonumber(string.sub(redis.sha1hex(form), 1, 8), 16) % MOST + 1
      while redis.call("HEXISTS", P .. "forms", number) == 1 do number = number % MOST + 1 end
      redis.call("HSET", P .. "forms", number, form, "=" .. form, number)
    end
  end
  numbers[i] = number
end
return numbers
