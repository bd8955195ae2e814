-- The proxy pools of this shard as a call knows them: rules, and the members that a lane never had.
--
--   S pool:POOL     hash  version, rules (PoolRules, packed), last (the number of the member added last), changes (how
--                         often it was registered), alike (1 while no member was ever removed and all have full weight:
--                         then members need not be looked up in the pool)
--   S pools:POOL    hash  member (6 bytes) -> its number and weight     S added:POOL   zset  the same, and
--                         those that were removed -> number
--   S dealing:POOL  hash  number of a block (4 bytes) -> the members with the numbers of that block, one after the other,
--                         each with its number
--   S removed:POOL  hash  member that was removed -> its number
--   S registered    hash  pool -> version
--
-- part of pool_members
-- uses clock: call
-- uses job_counters: sub max min pack_ unpack_ S
-- uses lane_pool: pool_parts
-- exports: begin_pools known_pools pool_named filled_up deal_members

-- Name -> pool; false: it was not registered.
known_pools = nil

function begin_pools()
  known_pools = {}
end

-- A value that an older version wrote is shorter: zeros stand for what it does not have.
function filled_up(packed, size)
  return #packed < size and packed .. string.rep("\0", size - #packed) or packed
end

local function read_pool(name)
  local packed, last, changes, alike =
    unpack(call("HMGET", S .. "pool:" .. name, "rules", "last", "changes", "alike"), 1, 4)
  if not packed then return false end
  local rules = {unpack_(RULES_FORM, filled_up(packed, RULES_BYTES))}
  last, changes = tonumber(last), tonumber(changes) or 0
  local accounts, rotates = sub(name, 1, 1) == ACCOUNTS, rules[RULE_HOLD] == 1
  local faulty, are_alike = call("EXISTS", S .. "faults:" .. name) == 1, alike == "1"
  -- None of these is negative. They need the load of each member.
  local limited = accounts or rules[RULE_MEMBER_INTERVAL] + rules[RULE_MEMBER_CONCURRENCY]
    + rules[RULE_MEMBER_USES] + rules[RULE_REST_OF_DEAD] > 0
  local pool = {
    name = name, last = last, changes = changes, rules = rules, interval = rules[RULE_INTERVAL],
    accounts = accounts, limited = limited, rotates = rotates, faulty = faulty, alike = are_alike,
    -- A lease need not look up its members: none of them is held, or another than the rest.
    plain = are_alike and not faulty and not limited and rotates,
    -- A good visit needs no more of a member than its state.
    simple = rotates and not limited,
    -- What is known of the ring of most lanes that have had all of them.
    calm_ring = pack_(CALM_RING_FORM, last, changes),
    cleared = {}, blocks = {},
  }
  return pool
end

function pool_named(name)
  local pool = known_pools[name]
  if pool == nil then
    pool = read_pool(name)
    known_pools[name] = pool
  end
  return pool
end

-- The members of a pool with the numbers of a block; false: none is left of them.
local function block_of(pool, block)
  local fronts = pool.blocks[block]
  if fronts == nil then
    fronts = call("HGET", S .. "dealing:" .. pool.name, pack_("<I4", block))
    pool.blocks[block] = fronts
  end
  return fronts
end

-- Only this one: in the pool, or to come.
local function deal_account(pool, account, dealt, taken, at)
  local number = tonumber(call("ZSCORE", S .. "added:" .. pool.name, account))
  if not number or number <= dealt then return 0, pool.last end
  taken[at + 1] = account .. pack_("<I4", number)
  return 1, pool.last
end

-- Up to so many members that the lane never had: their ids and numbers go into `taken` behind that place. How many, and the
-- number of the last of them.
function deal_members(name, pool, dealt, count, taken, at)
  local account = pool.accounts and select(2, pool_parts(name))
  if account then return deal_account(pool, account, dealt, taken, at) end
  local place = dealt % DEALT_TOGETHER
  local fronts = block_of(pool, (dealt - place) / DEALT_TOGETHER)
  if not fronts then
    local key = S .. "added:" .. pool.name
    local _, number = unpack(call("ZRANGEBYSCORE", key, "(" .. dealt, "+inf", "WITHSCORES", "LIMIT", 0, 1), 1, 2)
    dealt = number and tonumber(number) - 1 or pool.last
    place = dealt % DEALT_TOGETHER
    fronts = number and block_of(pool, (dealt - place) / DEALT_TOGETHER) or ""
  end
  count = max(0, min(count, #fronts / MEMBER_NAME - place))
  local from = place * MEMBER_NAME + 1
  for _ = 1, count do
    at = at + 1
    taken[at] = sub(fronts, from, from + MEMBER_NAME - 1)
    from = from + MEMBER_NAME
  end
  return count, count > 0 and dealt + count or pool.last
end
