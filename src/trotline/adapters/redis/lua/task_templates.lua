#!lua
-- Numbers of task templates (route, site, priority, ...): stored once, referenced by two bytes in a blob.
--   KEYS[1] P job     ARGV[1..] templates as msgpack     returns their numbers; 0 if there are too many
--
--   P forms    hash  number -> template, and "=" template -> number

-- The search for a number starts at the template's hash: after a failover that lost some, the same template gets the same
-- number again, so that cached numbers stay valid.

if redis.call("EXISTS", KEYS[1]) == 0 then return redis.error_reply("NOJOB this server has no such job") end

local P = string.sub(KEYS[1], 1, -4)
local numbers = {}
for i, template in ipairs(ARGV) do
  local number = tonumber(redis.call("HGET", P .. "forms", "=" .. template))
  if not number then
    if redis.call("HLEN", P .. "forms") / 2 >= MOST_TEMPLATES then
      number = 0
    else
      number = tonumber(string.sub(redis.sha1hex(template), 1, 8), 16) % TEMPLATE_NUMBERS + 1
      while redis.call("HEXISTS", P .. "forms", number) == 1 do number = number % TEMPLATE_NUMBERS + 1 end
      redis.call("HSET", P .. "forms", number, template, "=" .. template, number)
    end
  end
  numbers[i] = number
end
return numbers
