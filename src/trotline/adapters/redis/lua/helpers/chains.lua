-- Chains: of the steps of a chain one, its head, is in a lane's queue or leased. The next one is queued when it is done.
--
--   P chains     hash  chain -> mode, the reason with which steps die, the parcel of its head (as it was queued)
--   P c:CHAIN    list  steps that wait for the head: due time, parcel
--   P x:CHAIN    list  ids of graves of steps that were buried because the head was, behind those of P c:CHAIN
--   P chained    hash  lane -> number of its tasks in lists
--   P broken     set   chains whose steps are still to be moved from one list to the other; P job has "broken" then
--
-- A head that is buried fails its chain: its steps move from the end of the first list to the front of the second, and
-- back when it is revived. So the order of the chain is always the first list and then the second. A chain is forgotten
-- with its last step.
--
-- In the blob of a step the chain's name is behind the head: its size (4 bytes), and the name; then the size of the URL.
--
-- uses clock: call
-- uses job_counters: sub byte find pack_ unpack_ JOB P book many
-- uses job_lanes: lanes load_lanes
-- uses priority_levels: wait_in
-- uses dequeued_tasks: wrap with_counts id_of inter exhume
-- exports: is_step chains

-- And CHAIN_FAILED, which is 1.
local CHAIN_RUNS, CHAIN_REVIVES = 0, 2
-- Of one call: steps that are buried or revived for their head, and chains that are looked at.
local STEPS_AT_ONCE, LOOKED_AFTER = 500, 20
local made

-- Has the task a chain? Only such tasks, and of calls that say that there are some, cost more than this.
function is_step(blob)
  local flags = byte(blob, BLOB_FLAGS)
  return flags and flags >= FLAG_CHAIN and byte(blob, 1) == BLOB_VERSION
end

local function make()
  local found, known, room = {}, {}, STEPS_AT_ONCE

  -- The chain's name, and where the rest of the blob begins; nil if it is damaged.
  local function name_of(blob)
    if not is_step(blob) or #blob < BLOB_BYTES + 4 then return nil end
    local size, at = unpack_(">I4", blob, BLOB_BYTES + 1)
    if #blob < at + size - 1 then return nil end
    return sub(blob, at, at + size - 1), at + size
  end

  -- A chain that another program wrote over: the task that ends next is taken for its head, or its steps would wait for ever.
  local DAMAGED = {mode = CHAIN_RUNS, why = "", parcel = false}

  local function opened(packed)
    if #packed < 5 then return DAMAGED end
    local mode, size, at = unpack_("<BI4", packed)
    if mode > CHAIN_REVIVES or #packed < at + size + 5 then return DAMAGED end
    local parcel = sub(packed, at + size)
    local _, length, from = unpack_("<i4I2", parcel)
    if #parcel < from + length + BLOB_BYTES - 1 then return DAMAGED end
    return {mode = mode, why = sub(packed, at, at + size - 1), parcel = parcel, blob = sub(parcel, from + length)}
  end

  local function read(name)
    if known[name] == nil then
      local packed = call("HGET", P .. "chains", name)
      known[name] = packed and opened(packed) or false
    end
    return known[name]
  end

  local function write(name, mode, why, parcel)
    local packed = pack_("<BI4", mode, #why) .. why .. parcel
    call("HSET", P .. "chains", name, packed)
    known[name] = opened(packed)
  end

  -- What is in a list: level, lane, blob, parcel and due time; nil if another program wrote it.
  local function read_entry(entry)
    if #entry < CHAIN_ENTRY + 5 then return nil end
    local due, _, size, at = unpack_("<di4I2", entry)
    if #entry < at + size + BLOB_BYTES - 1 then return nil end
    local level, lane, from = unpack_(PARCEL_FORM, entry, CHAIN_ENTRY)
    local blob = sub(entry, from)
    if not is_step(blob) then return nil end
    return level, lane, blob, sub(entry, CHAIN_ENTRY), due
  end

  local function is_head(chain, blob)
    return not chain.parcel or sub(chain.blob, BLOB_FINGERPRINT, BLOB_COUNTS - 1) == sub(blob, BLOB_FINGERPRINT, BLOB_COUNTS - 1)
  end

  local function listed(lane, count)
    if call("HINCRBY", P .. "chained", lane, count) <= 0 then call("HDEL", P .. "chained", lane) end
  end

  -- A template has the URL's scheme, and a URL like most in its lane begins with that and the lane's host.
  local function start_of(blob, lane)
    local pool = find(lane, VIA, 1, true)
    local host = pool and sub(lane, 1, pool - 1) or lane
    local form = call("HGET", P .. "forms", (unpack_(">I2", blob, BLOB_TEMPLATE)))
    local whole, template = pcall(cmsgpack.unpack, form or "")
    local scheme = whole and type(template) == "table" and template[TEMPLATE_SCHEME]
    return scheme and scheme .. "://" .. host or host
  end

  local function url_of(blob, lane)
    local _, at = name_of(blob)
    local size, from = unpack_(">I2", blob .. "\0\0", at)
    local text = sub(blob, from, from + size - 1)
    if byte(blob, BLOB_FLAGS) % 2 == FLAG_SHORT then text = start_of(blob, lane) .. text end
    return text ~= "" and sub(text, 1, LONGEST_STEP_URL) or id_of(blob)
  end

  -- Steps are left that belong into the other list: leases go on with them.
  local function keep_on(name, more)
    if more then
      call("SADD", P .. "broken", name)
      call("HSET", JOB, "broken", "1")
    else
      call("SREM", P .. "broken", name)
    end
  end

  -- Bury steps of a failed chain, the last ones first.
  local function bury_some(name, chain)
    local entries = room > 0 and call("RPOP", P .. "c:" .. name, room) or {}
    local ids = {}
    for i = 1, #entries do
      local level, lane, blob = read_entry(entries[i])
      if level then
        ids[#ids + 1] = inter(lane, level, blob, chain.why, "", STEP_TALLY)
        listed(lane, -1)
      end
    end
    many("LPUSH", P .. "x:" .. name, ids)
    book.waiting = book.waiting - #ids
    room = room - #entries
    keep_on(name, call("EXISTS", P .. "c:" .. name) == 1)
  end

  -- Revive steps that were buried for their head, the first ones first. Returns their number.
  local function raise_some(name, chain)
    local ids = room > 0 and call("LPOP", P .. "x:" .. name, room) or {}
    local entries = {}
    for i = 1, #ids do
      local grave = call("HGET", P .. "graves", ids[i])
      if grave then
        local _, why, _, at = unpack_(GRAVE_FORM, grave)
        local level, lane, from = unpack_(PARCEL_FORM, grave, at)
        exhume(ids[i], why)
        entries[#entries + 1] = pack_("<d", 0) .. wrap(lane, level) .. with_counts(sub(grave, from), 0, 0, 0)
        listed(lane, 1)
      end
    end
    many("RPUSH", P .. "c:" .. name, entries)
    room = room - #ids
    local more = call("EXISTS", P .. "x:" .. name) == 1
    write(name, more and CHAIN_REVIVES or CHAIN_RUNS, more and chain.why or "", chain.parcel)
    keep_on(name, more)
    return #entries
  end

  -- A task is admitted, and counted as waiting. False if it is to be queued; else it is in a list, or buried.
  function found.join(lane, level, blob, due)
    local name = name_of(blob)
    if not name then return false end
    local chain = read(name)
    if not chain then
      write(name, CHAIN_RUNS, "", wrap(lane, level) .. blob)
      return false
    end
    if chain.mode == CHAIN_RUNS then
      call("RPUSH", P .. "c:" .. name, pack_("<d", due) .. wrap(lane, level) .. blob)
      listed(lane, 1)
    else
      call("RPUSH", P .. "x:" .. name, inter(lane, level, blob, chain.why, "", STEP_TALLY))
      book.waiting = book.waiting - 1
    end
    return true
  end

  -- The next step of its list, if there is one.
  local function take(name)
    local entry
    repeat
      entry = call("LPOP", P .. "c:" .. name)
      local level, lane, blob, parcel, due = read_entry(entry or "")
      if level then return level, lane, blob, parcel, due end
    until not entry
    return nil
  end

  -- A task is done: if it is the head of its chain, the next step is queued.
  function found.done(blob)
    local name = name_of(blob)
    local chain = name and read(name)
    if not chain or chain.mode == CHAIN_FAILED or not is_head(chain, blob) then return end
    local level, lane, next_blob, parcel, due = take(name)
    if not level and chain.mode == CHAIN_REVIVES then
      room = room + 1
      raise_some(name, chain)
      chain = read(name)
      level, lane, next_blob, parcel, due = take(name)
    end
    if not level then
      call("HDEL", P .. "chains", name)
      known[name] = false
      return
    end
    load_lanes({lane})
    wait_in(lanes[lane], level, next_blob, due)
    listed(lane, -1)
    write(name, chain.mode, chain.why, parcel)
  end

  -- A task was buried: if it is the head of its chain, so are the steps behind it.
  function found.failed(lane, level, blob, why)
    local name = name_of(blob)
    local chain = name and read(name)
    if not chain or chain.mode == CHAIN_FAILED or not is_head(chain, blob) then return end
    write(name, CHAIN_FAILED, STEP_WHY .. url_of(blob, lane) .. STEP_FAILED .. why,
      chain.parcel or wrap(lane, level) .. blob)
    bury_some(name, known[name])
  end

  -- Revive the failed chain of a buried step: its head, and what was buried for it. Returns the number of revived tasks; nil
  -- if its chain has not failed, or without it.
  function found.revive(id, why, blob)
    local name = name_of(blob)
    local chain = name and read(name)
    if not chain or chain.mode ~= CHAIN_FAILED then return nil end
    local head = id_of(chain.blob)
    local grave = (id == head or why == chain.why) and call("HGET", P .. "graves", head)
    if not grave then return nil end
    local _, its_why, _, at = unpack_(GRAVE_FORM, grave)
    local _, lane, from = unpack_(PARCEL_FORM, grave, at)
    local level = unpack_("<i4", chain.parcel)
    local raised = with_counts(sub(grave, from), 0, 0, 0)
    load_lanes({lane})
    exhume(head, its_why)
    wait_in(lanes[lane], level, raised, 0)
    chain.parcel = wrap(lane, level) .. raised
    -- What is left to bury is revived instead: it is in the first list already.
    return 1 + raise_some(name, chain)
  end

  -- Go on with chains of which steps are in the wrong list. Returns the number of revived ones, and whether there are more.
  function found.tend()
    local names, risen = call("SRANDMEMBER", P .. "broken", LOOKED_AFTER), 0
    for i = 1, #names do
      local chain = read(names[i])
      if not chain or chain.mode == CHAIN_RUNS then
        call("SREM", P .. "broken", names[i])
      elseif chain.mode == CHAIN_FAILED then
        bury_some(names[i], chain)
      else
        risen = risen + raise_some(names[i], chain)
      end
    end
    local more = call("EXISTS", P .. "broken") == 1
    if not more then call("HDEL", JOB, "broken") end
    return risen, more
  end

  return found
end

function chains()
  if not made then made = make() end
  return made
end
