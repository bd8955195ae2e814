-- Fingerprints ever admitted, in a Bloom filter.
--
--   P s:LAYER:PARTITION    its bits; see memory_bloom.lua
--   P job plan             its layers

local SEEN = P .. "s:"

local function seen_has(fingerprint, spread)
  return memory_has(book, SEEN, fingerprint, spread)
end

-- True if it is new; from then on it is known.
local function seen_add(fingerprint, spread)
  return memory_add(book, SEEN, fingerprint, spread)
end

-- The books hold all there is to write.
local function seen_close() end
