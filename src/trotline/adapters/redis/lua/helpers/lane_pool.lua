-- What the name of a lane says of its pool: `shop.example via residential`, `shop.example via @buyers/anna`.
-- model/proxy_pool.py has the same rules.
--
-- exports: pool_of pool_parts

local find, sub = string.find, string.sub
local HEX_DIGITS = 12
-- What names say is kept from call to call: a name means the same in each. Up to so many of them.
local MOST_NAMES_KEPT = 10000
local pools = {} -- once
local names_kept = 0 -- once

-- Where the name of a lane has its last VIA; nil: direct connections.
local function last_via(name)
  local at, found = find(name, VIA, 1, true), nil
  while at do
    found = at
    at = find(name, VIA, at + 1, true)
  end
  return found
end

-- The pool in the name of a lane, without an account; false: direct connections.
function pool_of(name)
  local pool = pools[name]
  if pool == nil then
    local at = last_via(name)
    pool = at and sub(name, at + #VIA) or false
    if pool and sub(pool, 1, 1) == ACCOUNTS then
      local cut = find(pool, ACCOUNT, 1, true)
      if cut then pool = sub(pool, 1, cut - 1) end
    end
    if names_kept >= MOST_NAMES_KEPT then
      for known in pairs(pools) do pools[known] = nil end
      names_kept = 0
    end
    pools[name], names_kept = pool, names_kept + 1
  end
  return pool
end

local function id_of(account)
  local digits = sub(redis.sha1hex(account), 1, HEX_DIGITS)
  local id = string.gsub(digits, "..", function(pair) return string.char(tonumber(pair, 16)) end)
  return id ~= string.rep("\0", 6) and id or string.rep("\0", 5) .. "\1"
end

-- The lane without its pool; and the one member (6 bytes) that visits it, where its name has an account.
function pool_parts(name)
  local at = last_via(name)
  if not at then return name, nil end
  local pool = sub(name, at + #VIA)
  return sub(name, 1, at - 1), pool ~= pool_of(name) and id_of(pool) or nil
end
