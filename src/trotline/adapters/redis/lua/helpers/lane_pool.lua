-- What the name of a lane says of its pool: `shop.example via residential`, `shop.example via @buyers/anna`.
-- model/proxy_pool.py has the same rules.
--
-- exports: pool_of host_of account_of

local find, sub = string.find, string.sub
local pools, hosts, whole, ids = {}, {}, {}, {}

-- The pool in the name of a lane, without an account; false: direct connections.
function pool_of(name)
  local pool = pools[name]
  if pool == nil then
    local at = find(name, VIA, 1, true)
    while at do
      pool, hosts[name] = sub(name, at + #VIA), sub(name, 1, at - 1)
      at = find(name, VIA, at + 1, true)
    end
    if pool and sub(pool, 1, 1) == ACCOUNTS then
      local cut = find(pool, ACCOUNT, 1, true)
      if cut then whole[name], pool = pool, sub(pool, 1, cut - 1) end
    end
    pool = pool or false
    pools[name] = pool
  end
  return pool
end

-- The lane without its pool.
function host_of(name)
  return pool_of(name) and hosts[name] or name
end

-- The one member (6 bytes) that visits this lane, where its name has an account; nil: any member of its pool.
function account_of(name)
  if not pool_of(name) or not whole[name] then return nil end
  local id = ids[name]
  if not id then
    id = string.gsub(sub(redis.sha1hex(whole[name]), 1, 12), "..", function(pair) return string.char(tonumber(pair, 16)) end)
    if id == string.rep("\0", 6) then id = string.rep("\0", 5) .. "\1" end
    ids[name] = id
  end
  return id
end
