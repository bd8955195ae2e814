-- The members of proxy pools: who goes out next in a lane, and where they wait. rules/proxy_ring.py has the rules, and these
-- files the maps of the keys:
--
--   proxy_pools     the pools, and members that a lane never had
--   ring_store      the ring of a lane: members that may go out
--   ring_moves      members that rest, and where a member goes
--   block_evidence   what is known of blocks by a site
--   member_limits   what holds for a member over all lanes
--   take_members    a lease takes members     return_members  they come back
--
-- uses proxy_pools: begin_pools pool_named
-- uses block_evidence: begin_evidence all_calm read_evidence write_evidence
-- uses ring_store: begin_rings read_rings flush_tails write_ring_strings
-- uses member_limits: begin_limits clear_all_faults rest_of_dead
-- uses take_members: begin_taking take_members put_back_members send_out
-- uses return_members: begin_returns come_back site_blocked served_sooner member_free_at
-- uses return_members: want_member wake_waiting
-- exports: members sooner_lanes is_plainly_back

local made -- once
local begun = false

-- At the end of a call.
local function write()
  flush_tails()
  wake_waiting()
  write_ring_strings()
  write_evidence()
  clear_all_faults()
end

local function functions()
  return {
    pool_named = pool_named, read_rings = read_rings,
    is_all_calm = function() return all_calm end, read_evidence = read_evidence, site_blocked = site_blocked,
    take = take_members, put_back = put_back_members, go_out = send_out,
    come_back = come_back, rest_of_dead = rest_of_dead, served_sooner = served_sooner,
    free_from = member_free_at, want = want_member, write = write,
  }
end

-- The functions. What the last call knew is forgotten when they are needed: most calls have nothing to do with proxy pools,
-- and then `sooner_lanes` is nil.
function members()
  if not begun then
    begun = true
    begin_pools()
    begin_evidence()
    begin_rings()
    begin_limits()
    begin_taking()
    begin_returns()
    made = made or functions()
  end
  return made
end
