-- Lanes for views. own: the job's packed lanes, or false.
-- Adds the values of lua_layouts.py's LaneRow for each of them.
--
-- uses job_counters: pack_ P book
-- uses pace: allowed credit
-- uses shared_lanes: SHARED HEEDS bounds_of read_shared
-- uses job_lanes: more_of add_own fetch
-- uses priority_levels: waiting_in
-- exports: view_of

local function pace_of(lane)
  return pack_(VIEW_PACE_FORM, allowed(lane, HEEDS), lane[INTERVAL], lane[REST], lane[LATENCY], lane[TROUBLE], credit(lane))
end

-- Lanes that were never visited differ in nothing but their name and what waits in them, and a broad crawl has a hundred
-- thousand of them: one lane for all with the same bounds, and its packed pace.
local unvisited, unvisited_pace = {}, {}

local function read_for_view(name, shared)
  if shared then
    local lane = read_shared(name, shared)
    return lane, pace_of(lane)
  end
  local bounds = bounds_of(name)
  local lane = unvisited[bounds]
  if not lane then
    lane = read_shared(name, false)
    unvisited[bounds], unvisited_pace[bounds] = lane, pace_of(lane)
  end
  lane[NAME], lane[STATE], lane[LEVELS], more_of[lane] = name, RUNNING, 0, nil
  return lane, unvisited_pace[bounds]
end

function view_of(views, names, own)
  local shared, listed = fetch(SHARED, names), fetch(P .. "chained", names)
  local on, over = {}, {}
  if book.shelf then on, over = fetch(P .. "onshelf", names), fetch(P .. "overflow", names) end
  for i = 1, #names do
    local lane, paced = read_for_view(names[i], shared[i])
    add_own(lane, own[i])
    local mine, at = lane[MINE], #views + 1
    local leased = mine > 0 and lane[CLAIMS][mine + CLAIM_RUNS] or 0
    local waiting = waiting_in(lane) + (listed[i] or 0) + (on[i] or 0) + (over[i] or 0)
    views[at + VIEW_LANE], views[at + VIEW_FIGURES] = names[i], pack_(VIEW_COUNTS_FORM, lane[STATE], leased, waiting) .. paced
    views[at + VIEW_WHY], views[at + VIEW_OWN] = lane[WHY], more_of[lane] and own[i] or ""
  end
  return views
end
