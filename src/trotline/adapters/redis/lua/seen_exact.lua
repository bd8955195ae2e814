-- Fingerprints ever admitted, each as a whole number.
--
--   P s:N    set of integers (kept by the server as a sorted array: 8 bytes each)
--
-- Linear hashing: buckets are split one by one as they fill, so that none grows beyond what the server keeps as an
-- array (512), and no call ever pays for all of them. A fingerprint's last nine digits (`spread`) say which bucket is
-- its own.

local FILL = 190
local SEEN = P .. "s:"
local ring = 1
while ring * 2 <= book.buckets do ring = ring * 2 end

local function seen_bucket(spread)
  local bucket = spread % (2 * ring)
  if bucket >= book.buckets then bucket = spread % ring end
  return SEEN .. bucket
end

local function seen_split()
  local old, new = book.buckets - ring, book.buckets
  local moved = {}
  for _, member in ipairs(call("SMEMBERS", SEEN .. old)) do
    if math.abs(tonumber(sub(member, -9))) % (2 * ring) ~= old then moved[#moved + 1] = member end
  end
  for from = 1, #moved, 1000 do
    local upto = math.min(#moved, from + 999)
    call("SADD", SEEN .. new, unpack(moved, from, upto))
    call("SREM", SEEN .. old, unpack(moved, from, upto))
  end
  book.buckets = new + 1
  if book.buckets == 2 * ring then ring = book.buckets end
end

local function seen_has(fingerprint, spread)
  return call("SISMEMBER", seen_bucket(spread), fingerprint) == 1
end

-- True if it is new; from then on it is known.
local function seen_add(fingerprint, spread)
  if call("SADD", seen_bucket(spread), fingerprint) == 0 then return false end
  book.seen = book.seen + 1
  if book.seen > FILL * book.buckets then seen_split() end
  return true
end
