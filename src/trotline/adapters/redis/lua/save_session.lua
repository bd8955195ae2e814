#!lua
-- Store the state of an account for its next holder, if the worker still holds the lease that goes out through it.
--   KEYS[1] P job     ARGV[2] worker     ARGV[3] token (6 bytes)     ARGV[4] fingerprint (8 bytes)
--   ARGV[5] account (6 bytes)     ARGV[6] state; empty: it has none
--   returns 1, or 0 if the lease is no longer held. Of an account that was removed from its pool nothing is stored
--
-- uses clock: call
-- uses job_counters: sub unpack_ P S
-- uses lane_pool: pool_of
-- uses dequeued_tasks: leased_parts

local parcel = call("HGET", P .. "held:" .. ARGV[2], ARGV[3])
if not parcel then return 0 end
local _, lane, at = unpack_(PARCEL_FORM, parcel)
local _, member = leased_parts(parcel, lane, at)
if not member or sub(member, 1, MEMBER_ID_BYTES) ~= ARGV[5] then return 0 end
if sub(parcel, at + BLOB_FINGERPRINT - 1, at + BLOB_COUNTS - 2) ~= ARGV[4] then return 0 end
local pool = pool_of(lane)
if not pool or sub(pool, 1, 1) ~= ACCOUNTS then return 0 end
if ARGV[6] == "" then
  call("HDEL", S .. "sessions:" .. pool, ARGV[5])
elseif call("HEXISTS", S .. "pools:" .. pool, ARGV[5]) == 1 then
  call("HSET", S .. "sessions:" .. pool, ARGV[5], ARGV[6])
end
return 1
