-- What is known of blocks by the sites of lanes with a proxy pool, where there is anything: a good visit needs no more of
-- its lane than whether there is.
--
--   S evidence    hash  lane -> RING in lua_layouts.py, from EVIDENCE on
--
-- part of pool_members
-- uses clock: call
-- uses job_counters: min pack_ S many
-- uses proxy_ring: proxy_ring
-- exports: begin_evidence lane_evidence all_calm read_evidence evidence_of judge_site write_evidence

-- Lane -> its packed evidence, false if there is none; nil: it was not read.
lane_evidence = nil
-- There was none of any lane when the call began, and no ring was opened in it.
all_calm = nil
local has_any, judged

function begin_evidence()
  has_any = call("EXISTS", S .. "evidence") == 1
  lane_evidence, judged, all_calm = {}, {}, not has_any
end

-- The evidence of these lanes, read together.
function read_evidence(names)
  for from = 1, has_any and #names or 0, 1000 do
    local found = call("HMGET", S .. "evidence", unpack(names, from, min(#names, from + 999)))
    for i = 1, #found do
      lane_evidence[names[from + i - 1]] = found[i] and #found[i] == EVIDENCE_BYTES and found[i]
    end
  end
end

-- Packed; false if there is none.
function evidence_of(name)
  if lane_evidence[name] == nil then
    if not has_any then return false end
    read_evidence({name})
  end
  return lane_evidence[name]
end

-- The evidence against the site of this ring has changed.
function judge_site(name, ring) judged[name] = ring end

local function is_none(ring)
  return ring[RING_EVIDENCE] == 0 and ring[RING_SHARE] == 0 and ring[RING_SUSPECTED_AT] == 0
    and ring[RING_BLOCKED_AT] == 0 and ring[RING_TESTED] == proxy_ring().not_tested
end

function write_evidence()
  local known, unknown = {}, {}
  for name, ring in pairs(judged) do
    if is_none(ring) then
      unknown[#unknown + 1] = name
    else
      known[#known + 1] = name
      known[#known + 1] = pack_(EVIDENCE_FORM, unpack(ring, RING_EVIDENCE, RING_TESTED))
    end
  end
  many("HSET", S .. "evidence", known)
  many("HDEL", S .. "evidence", unknown)
  judged = {}
end
