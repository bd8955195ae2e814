#!lua flags=no-writes
-- The leases that a worker still holds.
--   KEYS[1] P job     ARGV[2] worker     then for each lease its token (6 bytes) and fingerprint (8 bytes)
--   returns for each nil, or its level (4 bytes) and its attempts, deaths and kills (4 bytes)
--
-- uses clock: call
-- uses job_counters: sub unpack_ P

local answers = {}
for i = 3, #ARGV, 2 do
  local parcel = ARGV[i] ~= "" and call("HGET", P .. "held:" .. ARGV[2], ARGV[i])
  local answer = false
  if parcel then
    local _, _, at = unpack_(PARCEL_FORM, parcel)
    local blob = sub(parcel, at, at + BLOB_BYTES - 1)
    if sub(blob, BLOB_FINGERPRINT, BLOB_COUNTS - 1) == ARGV[i + 1] then
      answer = sub(parcel, 1, LEVEL_BYTES) .. sub(blob, BLOB_COUNTS, BLOB_AFTER_COUNTS - 1)
    end
  end
  answers[#answers + 1] = answer
end
return answers
