#!lua
-- The lane of a chain's first step: on several shards the chain keeps to the shard of that lane.
--   KEYS[1] P job     ARGV[1..] for each chain its name and the lane of a step, which counts if it is the first
--   returns for each the lane of its first step
--
--   P chainlanes    hash  chain -> lane (in the shard of the chain's name)

if redis.call("EXISTS", KEYS[1]) == 0 then return redis.error_reply("NOJOB this server has no such job") end

local key = string.sub(KEYS[1], 1, -4) .. "chainlanes"
local lanes = {}
for i = 1, #ARGV, 2 do
  redis.call("HSETNX", key, ARGV[i], ARGV[i + 1])
  lanes[#lanes + 1] = redis.call("HGET", key, ARGV[i])
end
return lanes
