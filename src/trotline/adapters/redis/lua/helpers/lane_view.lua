-- Lanes for views. own: the job's packed lanes, or false.
-- Adds the values of layouts.py's LaneRow for each of them, numbers with fractions as text.
--
-- uses job_books: P book
-- uses pace: allowed failing credit
-- uses shared_lanes: SHARED HEEDS
-- uses job_lanes: read_lane fetch
-- uses priority_levels: waiting_in
-- exports: view_of

function view_of(views, names, own)
  local shared, listed = fetch(SHARED, names), fetch(P .. "chained", names)
  local on, over = {}, {}
  if book.shelf then on, over = fetch(P .. "onshelf", names), fetch(P .. "overflow", names) end
  for i = 1, #names do
    local lane = read_lane(names[i], own[i], shared[i])
    local mine, at = lane[MINE], #views + 1
    views[at + VIEW_LANE], views[at + VIEW_OWN], views[at + VIEW_STATE] = names[i], own[i] or "", lane[STATE]
    views[at + VIEW_LEASED] = mine > 0 and lane[CLAIMS][mine + CLAIM_RUNS] or 0
    views[at + VIEW_INTERVAL] = string.format("%.17g", lane[INTERVAL])
    views[at + VIEW_REST_UNTIL] = string.format("%.17g", lane[REST])
    views[at + VIEW_WHY], views[at + VIEW_WAITING] = lane[WHY], waiting_in(lane) + (listed[i] or 0) + (on[i] or 0) + (over[i] or 0)
    views[at + VIEW_CONCURRENCY] = allowed(lane, HEEDS)
    views[at + VIEW_LATENCY] = string.format("%.17g", lane[LATENCY])
    views[at + VIEW_TROUBLE] = string.format("%.17g", lane[TROUBLE])
    views[at + VIEW_CREDIT] = failing(lane) and string.format("%.17g", credit(lane)) or ""
  end
  return views
end
