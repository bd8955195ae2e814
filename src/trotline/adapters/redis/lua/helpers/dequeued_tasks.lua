-- Parcels: tasks outside their queue. And the graves of buried tasks.
--
--   parcel           level, lane and blob in one string; and that of a lease in a lane with a proxy pool the member that
--                    it goes out through (P held:W only)
--   P graves         hash  id -> when, why, detail, parcel
--   P graves:order   zset  id -> when
--   P reasons        hash  why -> count; folded if there are too many (job_counters.lua)
--
-- These scripts use only the head of a blob: version, fingerprint, attempt (2 bytes), deaths, kills; and of the step of a
-- chain the part behind it (chains.lua).
--
-- uses clock: call now
-- uses job_counters: sub byte min pack_ unpack_ P book reopened tally folded count_up
-- uses lane_pool: pool_of
-- exports: wrap leased_parts counts_of with_packed_counts with_counts id_of inter empty_grave exhume

function wrap(lane, level)
  return pack_(PARCEL_FORM, level, #lane, lane)
end

-- Of the parcel of a lease in this lane, in which the blob begins there: the blob, and the member that it goes out
-- through; nil without a proxy pool.
function leased_parts(parcel, lane, at)
  if not pool_of(lane) then return sub(parcel, at), nil end
  return sub(parcel, at, -MEMBER_BYTES - 1), sub(parcel, -MEMBER_BYTES)
end

function counts_of(blob)
  if #blob < BLOB_BYTES or byte(blob, 1) ~= BLOB_VERSION then return nil end
  return unpack_(COUNTS_FORM, blob, BLOB_COUNTS)
end

function with_packed_counts(blob, counts)
  return sub(blob, 1, BLOB_COUNTS - 1) .. counts .. sub(blob, BLOB_AFTER_COUNTS)
end

-- The blob with these attempts, deaths and kills; one of another version is unchanged.
function with_counts(blob, attempt, deaths, kills)
  if not counts_of(blob) then return blob end
  return with_packed_counts(blob, pack_(COUNTS_FORM, min(attempt, 65535), min(deaths, 255), min(kills, 255)))
end

function id_of(blob)
  if not counts_of(blob) then return sub(redis.sha1hex(blob), 1, 16) end
  return string.format("%02x%02x%02x%02x%02x%02x%02x%02x", byte(blob, BLOB_FINGERPRINT, BLOB_COUNTS - 1))
end

-- The caller has removed the task from its queue, list or lease, and from that counter.
function inter(lane, level, blob, why, detail, name)
  local id = id_of(blob)
  local grave = pack_(GRAVE_FORM, now, #why, why, #detail, detail) .. wrap(lane, level) .. blob
  call("HSET", P .. "graves", id, grave)
  call("ZADD", P .. "graves:order", now, id)
  count_up(P .. "reasons", why, 1)
  book.dead = book.dead + 1
  book.ended = book.ended + 1
  tally(name, 1)
  return id
end

-- A grave is emptied: its task goes on elsewhere.
function empty_grave(id, why)
  call("HDEL", P .. "graves", id)
  call("ZREM", P .. "graves:order", id)
  local counted = call("HEXISTS", P .. "reasons", why) == 1 and why or folded(why)
  if call("HINCRBY", P .. "reasons", counted, -1) <= 0 then call("HDEL", P .. "reasons", counted) end
  book.dead = book.dead - 1
end

-- And waits again, in the queue or list into which the caller puts it.
function exhume(id, why)
  empty_grave(id, why)
  book.waiting = book.waiting + 1
  book.entered = book.entered + 1
  reopened = true
end
