-- Fingerprints ever admitted, in a Bloom filter.
--
--   P s:LAYER:PARTITION    its bits; see fingerprints_bloom.lua
--   P job plan             its layers
--
-- uses job_counters: P book
-- uses fingerprints_bloom: memory_has memory_add
-- exports: seen_has seen_add seen_close

local SEEN = P .. "s:"

function seen_has(fingerprint, spread)
  return memory_has(book, SEEN, fingerprint, spread)
end

-- True if it is new; from then on it is known.
function seen_add(fingerprint, spread)
  return memory_add(book, SEEN, fingerprint, spread)
end

-- The books hold all there is to write.
function seen_close() end
