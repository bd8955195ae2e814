-- Parcels: tasks outside their queue. And the graveyard.
--
--   parcel           level, lane and blob in one string
--   P graves         hash  id -> when, why, detail, parcel
--   P graves:order   zset  id -> when
--   P reasons        hash  why -> count; folded if there are too many (job_books.lua)
--
-- These scripts use only the head of a blob: version, fingerprint, attempt (2 bytes), deaths, kills.
--
-- uses clock: call now
-- uses job_books: sub byte min pack_ unpack_ P book tally count_up
-- uses job_lanes: LATE touch
-- uses priority_levels: close_level queue
-- exports: wrap counts_of with_packed_counts with_counts bury bury_waiting

function wrap(lane, level)
  return pack_(PARCEL_FORM, level, #lane, lane)
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

local function id_of(blob)
  if not counts_of(blob) then return sub(redis.sha1hex(blob), 1, 16) end
  return string.format("%02x%02x%02x%02x%02x%02x%02x%02x", byte(blob, BLOB_FINGERPRINT, BLOB_COUNTS - 1))
end

-- The caller has removed the task from its queue or lease, and from that counter.
function bury(lane, level, blob, why, detail, name)
  local id = id_of(blob)
  local grave = pack_(GRAVE_FORM, now, #why, why, #detail, detail) .. wrap(lane, level) .. blob
  call("HSET", P .. "graves", id, grave)
  call("ZADD", P .. "graves:order", now, id)
  count_up(P .. "reasons", why, 1)
  book.dead = book.dead + 1
  book.ended = book.ended + 1
  tally(name, 1)
end

-- Bury a lane's waiting tasks, up to a limit. Returns their number.
function bury_waiting(lane, why, limit)
  local buried, looks, name = 0, 0, "dead: " .. why
  touch(lane)
  -- A level may be empty, so the number of levels is limited, too.
  while lane[LEVELS] > 0 and buried < limit and looks < limit do
    looks = looks + 1
    local level = lane[LEVELS + 1]
    local blobs = call("LPOP", queue(lane, level), limit - buried) or {}
    for i = 1, #blobs do bury(lane[NAME], level, blobs[i], why, "", name) end
    buried = buried + #blobs
    if buried < limit then close_level(lane, LEVELS + 1) end
  end
  if buried < limit and lane[LEVELS] == 0 then
    local late = call("ZPOPMIN", LATE .. lane[NAME], limit - buried)
    for i = 1, #late, 2 do
      local level, at = unpack_("<i4", late[i])
      bury(lane[NAME], level, sub(late[i], at), why, "", name)
      buried = buried + 1
    end
    book.delayed = book.delayed - #late / 2
    if buried < limit then
      call("ZREM", P .. "due", lane[NAME])
      lane[DELAYED] = false
    end
  end
  book.waiting = book.waiting - buried
  return buried
end
