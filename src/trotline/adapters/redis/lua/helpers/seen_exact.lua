-- Fingerprints ever admitted, each as a whole number.
--
--   P s:N    set of integers (kept by the server as a sorted array: 8 bytes each)
--
-- Linear hashing by size: every bucket has a range of numbers, and buckets are split one by one as they fill, so that
-- none grows beyond what the server keeps as an array (512), and no call ever pays for all of them. A bucket splits in
-- the middle of its range: a sorted array is cut in two, and nothing has to be computed for its members.
-- `spread` is where a fingerprint lies between the smallest and the largest one, in steps of 2^34. Buckets are numbered
-- like the nodes of a tree: those of N are 2N and 2N + 1, and at any moment the buckets are `buckets` to 2 * buckets - 1.
--
-- uses clock: call
-- uses job_counters: floor min P book
-- exports: seen_has seen_add seen_close

local FILL = 190
local SEEN, format = P .. "s:", string.format
local ring = 1
while ring * 2 <= book.buckets do ring = ring * 2 end

local unit = SPREADS / ring

local function seen_bucket(spread)
  local at = (spread - spread % unit) / unit
  local number = ring + at
  if at < book.buckets - ring then
    local half = unit / 2
    number = 2 * ring + (spread - spread % half) / half
  end
  -- A third of what `..` takes for a number, which may have a fraction.
  return SEEN .. format("%d", number)
end

local function seen_split()
  local old = book.buckets
  local members = call("SMEMBERS", SEEN .. old)
  local middle = (2 * (old - ring) + 1) / ring * FINGERPRINT_HALF - FINGERPRINT_HALF
  local upper = {}
  if #members > 0 then
    if call("OBJECT", "ENCODING", SEEN .. old) == "intset" then
      local low, high = 1, #members + 1
      while low < high do
        local at = floor((low + high) / 2)
        if tonumber(members[at]) < middle then low = at + 1 else high = at end
      end
      for i = low, #members do upper[#upper + 1] = members[i] end
    else
      for i = 1, #members do
        if tonumber(members[i]) >= middle then upper[#upper + 1] = members[i] end
      end
    end
    call("RENAME", SEEN .. old, SEEN .. (2 * old))
  end
  for from = 1, #upper, 1000 do
    local upto = min(#upper, from + 999)
    call("SADD", SEEN .. (2 * old + 1), unpack(upper, from, upto))
    call("SREM", SEEN .. (2 * old), unpack(upper, from, upto))
  end
  book.buckets = old + 1
  if book.buckets == 2 * ring then
    ring = book.buckets
    unit = SPREADS / ring
  end
end

function seen_has(fingerprint, spread)
  return call("SISMEMBER", seen_bucket(spread), fingerprint) == 1
end

-- True if it is new; from then on it is known.
function seen_add(fingerprint, spread)
  if call("SADD", seen_bucket(spread), fingerprint) == 0 then return false end
  book.seen = book.seen + 1
  if book.seen > FILL * book.buckets then seen_split() end
  return true
end

-- The books hold all there is to write.
function seen_close() end
