#!lua flags=no-writes
-- needs: job
-- Which leases does a worker still hold?
--   KEYS[1] P job     ARGV[2] worker     then for each lease its token (6 bytes) and fingerprint (8 bytes)
--   gives for each nothing, or its level (4 bytes) and its attempts, deaths and kills (4 bytes)

local answers = {}
for i = 3, #ARGV, 2 do
  local parcel = ARGV[i] ~= "" and call("HGET", P .. "held:" .. ARGV[2], ARGV[i])
  local answer = false
  if parcel then
    local _, _, at = unpack_("<i4Hc0", parcel)
    if sub(parcel, at + 1, at + 8) == ARGV[i + 1] then answer = sub(parcel, 1, 4) .. sub(parcel, at + 9, at + 12) end
  end
  answers[#answers + 1] = answer
end
return answers
