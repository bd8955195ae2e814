#!lua flags=allow-oom
-- Delete what is known of the proxies of lanes that no job uses any more. A ring stays while a member is out, in
-- quarantine, or not due yet: without it that member could go out too early.
--   KEYS[1] P job     ARGV[2] and after: lanes with a proxy pool
--   returns how many of these lanes were looked at; the call ends early if their rings are long
--
-- helpers/pool_members.lua says where the maps of the keys are.
--
-- uses clock: call now
-- uses job_counters: unpack_ S book many
-- uses other_jobs: this_job
-- uses lane_pool: pool_of
-- uses proxy_ring: proxy_ring
-- uses lane_sharing: let_go
-- uses shared_lanes: SHARED
-- uses job_lanes: read_lane

-- Members of one call, and of one read.
local MOST, AT_ONCE = 20000, 1000
local looked = 0

local function is_used(name)
  local lane = read_lane(name, nil, call("HGET", SHARED, name))
  let_go(lane, true)
  return lane[LEASED] > 0 or #lane[CLAIMS] > 0
end

-- The shared part of a damaged lane is opened anew, and counts no visits: so they are counted here, too.
local function all_are_back(name, waiting, resting)
  local packed = call("HGET", S .. "rings", name)
  if not packed or #packed ~= RING_BYTES and #packed ~= CALM_RING_BYTES then return true end
  -- Both forms begin with it.
  local dealt = unpack_(CALM_RING_FORM, packed)
  return call("ZCOUNT", S .. "added:" .. pool_of(name), "-inf", dealt) <= waiting + resting
end

-- How many members of the ring are due, if all are; nil: one is not, or rests.
local function due_members(name, length)
  local count = 0
  local _, last = unpack(call("ZREVRANGE", S .. "resting:" .. name, 0, 0, "WITHSCORES"), 1, 2)
  if last and proxy_ring().due_of(tonumber(last)) > now then return nil end
  for from = 0, length - 1, AT_ONCE do
    local some = call("LRANGE", S .. "ring:" .. name, from, from + AT_ONCE - 1)
    for i = 1, #some do
      -- Another string was written by another program.
      for at = 1, #some[i] % MEMBER_BYTES == 0 and #some[i] or 0, MEMBER_BYTES do
        count = count + 1
        if unpack_(MEMBER_STATE_FORM, some[i], at + MEMBER_NAME) / UNITS > now then return nil end
      end
    end
  end
  looked = looked + count
  return count
end

this_job.over = book.state == "cancelled" or (book.sealed and book.waiting + book.leased == 0)
local idle, done = {}, 0
for i = 2, #ARGV do
  local name = ARGV[i]
  local length, resting = call("LLEN", S .. "ring:" .. name), call("ZCARD", S .. "resting:" .. name)
  if looked > 0 and looked + length > MOST then break end
  looked, done = looked + 1, done + 1
  local waiting = pool_of(name) and not is_used(name) and due_members(name, length)
  if waiting and all_are_back(name, waiting, resting) then idle[#idle + 1] = name end
end
for i = 1, #idle do call("UNLINK", S .. "ring:" .. idle[i], S .. "resting:" .. idle[i]) end
if #idle > 0 then
  many("HDEL", S .. "rings", idle)
  many("HDEL", S .. "evidence", idle)
end
return done
