#!lua flags=allow-oom
-- Bury leases whose tasks cannot be decoded, so that they are neither lost nor leased again.
--   KEYS[1] P job     ARGV[2] worker     then for each lease its token and the reason
--
-- uses clock: call
-- uses job_counters: pack_ many close_books
-- uses ready_lanes: write_lanes
-- uses graveyard: bury
-- uses worker_leases: HELD give_back

local fields, whys = {}, {}
for i = 3, #ARGV, 2 do
  fields[#fields + 1] = pack_(TOKEN_FORM, tonumber(ARGV[i]))
  whys[tonumber(ARGV[i])] = ARGV[i + 1]
end
local held = {}
for i = 1, #fields do
  local parcel = call("HGET", HELD .. ARGV[2], fields[i])
  if not parcel then break end
  held[i] = {token = tonumber(ARGV[1 + 2 * i]), parcel = parcel}
end
many("HDEL", HELD .. ARGV[2], fields)
give_back(held, function(token, lane, level, blob)
  bury(lane, level, blob, "undecodable: " .. whys[token], "", "dead: undecodable")
  return nil
end)
write_lanes()
close_books()
return #held
