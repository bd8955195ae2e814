-- Lanes as an operator looks at them. own: the job's own strings, or false.
-- Gives for each lane its name, its own string or "", its state, this job's visits there, its interval and until when it
-- rests (as text), why, and how many tasks wait in it.

local function view_of(views, names, own)
  local shared = fetch(SHARED, names)
  for i = 1, #names do
    local lane = read_lane(names[i], own[i], shared[i])
    local mine, at = lane[MINE], #views
    views[at + 1], views[at + 2], views[at + 3] = names[i], own[i] or "", lane[STATE]
    views[at + 4] = mine > 0 and lane[CLAIMS][mine + RUNS] or 0
    views[at + 5], views[at + 6] = string.format("%.17g", lane[INTERVAL]), string.format("%.17g", lane[REST])
    views[at + 7], views[at + 8] = lane[WHY], waiting_in(lane)
  end
  return views
end
