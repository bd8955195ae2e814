"""The rules of proxy rings in Lua and in Python are one: the same member, ring and place after any visit."""

from functools import lru_cache
from math import ceil
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from tests.contract.redis_servers import server

from trotline.adapters.redis.batch_codec import encode, raw
from trotline.adapters.redis.lua_layouts import MEMBER_FRONT_BYTES
from trotline.adapters.redis.pool_members import member_field, unpack_member, unpack_resting
from trotline.adapters.redis.scripts import plain_script
from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.rules import proxy_ring
from trotline.rules.proxy_ring import UNITS, Identity, LaneRing
from trotline.testing.redis_server import DEBIAN

NOW = 1_750_000_000.0
LATER = 7
"""Members that were added after the one that is looked at."""
KNOWN = ("evidence", "share", "suspected_at", "blocked_at", "tested_since", "tested_blocked_at")
HARNESS = """-- uses clock: now
-- uses proxy_ring: proxy_ring
local ring_rules, told = proxy_ring(), {}
for _, case in ipairs(cmsgpack.unpack(ARGV[2])) do
  local packed, result, known, rules, retry_after, chance
  now, packed, result, known, rules, retry_after, chance = unpack(case, 1, 7)
  local member, ring, state = ring_rules.unpack(packed), {}, string.sub(packed, MEMBER_FRONT + 1)
  ring[RING_GAP] = known[1]
  ring[RING_EVIDENCE], ring[RING_SHARE], ring[RING_SUSPECTED_AT], ring[RING_BLOCKED_AT], ring[RING_TESTED_SINCE],
    ring[RING_TESTED_BLOCKED_AT], ring[RING_TESTED] = unpack(known, 2, 8)
  local place, lift = ring_rules.returned(member, ring, result, rules, retry_after, chance)
  local last = member[MEMBER_ADDED] + LATER
  local score, resting = ring_rules.pack_resting(member)
  local again, same = ring_rules.pack_resting(ring_rules.unpack_resting(resting, tonumber(score), last))
  local found = {ring_rules.pack(member), place, lift, ring[RING_TESTED], ring_rules.better[state],
    ring_rules.plain[state] and 1 or 0, score, resting, last, score == again and resting == same and 1 or 0}
  for _, field in ipairs({RING_EVIDENCE, RING_SHARE, RING_SUSPECTED_AT, RING_BLOCKED_AT, RING_TESTED_SINCE,
    RING_TESTED_BLOCKED_AT}) do
    found[#found + 1] = string.format("%.17g", ring[field])
  end
  told[#told + 1] = found
end
return told
"""

identities = st.builds(
    Identity,
    member=st.just(1),
    due=st.integers(0, 20 * UNITS).map(lambda units: NOW + units / UNITS),
    quality=st.integers(1, proxy_ring.BEST),
    uses=st.integers(0, 49),
    good=st.integers(0, proxy_ring.CLEARED),
    strikes=st.integers(0, proxy_ring.MOST_STRIKES),
    slow=st.one_of(st.just(0), st.integers(0, proxy_ring.MOST_SLOW)),
)
rings = st.builds(
    LaneRing,
    evidence=st.one_of(st.just(0.0), st.floats(0, proxy_ring.SUSPICION)),
    share=st.one_of(st.just(0.0), st.floats(0, 0.002), st.floats(0, 1)),
    suspected_at=st.sampled_from([0.0, NOW - 50]),
    blocked_at=st.sampled_from([0.0, NOW - 10]),
    gap=st.sampled_from([0.0, 2.0]),
    tested=st.sampled_from([0, 1, 2]),
    tested_since=st.sampled_from([0.0, NOW - 100]),
    tested_blocked_at=st.sampled_from([0.0, NOW - 90]),
)
pool_rules = st.builds(
    PoolRules,
    interval=st.sampled_from([0.0, 1.5]),
    hold=st.sampled_from([0, 1, 1, 5]),
    probe=st.sampled_from([0.0, 30.0]),
)
cases = st.tuples(
    st.floats(0, 30).map(lambda seconds: NOW + seconds),
    identities,
    st.sampled_from(list(MemberResult)),
    rings,
    pool_rules,
    st.sampled_from([0.0, 3.0, 60.0]),
    st.floats(0, 0.999),
)
Case = tuple[float, Identity, MemberResult, LaneRing, PoolRules, float, float]


@lru_cache
def harness() -> Any:
    client = Redis.from_url(server(DEBIAN).url)
    return client.register_script(plain_script(HARNESS.replace("LATER", str(LATER))))


def packed(identity: Identity, added: int = 0) -> bytes:
    due = round(identity.due * UNITS).to_bytes(5, "little")
    state = (identity.quality, identity.uses, identity.good, identity.strikes, identity.slow)
    return member_field(identity.member) + added.to_bytes(4, "little") + due + bytes(state)


def in_lua(given_cases: list[Case], added: int = 0) -> list[list[Any]]:
    sent = [
        (
            now,
            raw(packed(identity, added)),
            result.value,
            [ring.gap, *(getattr(ring, field) for field in KNOWN), raw(member_field(ring.tested))],
            msgspec.structs.astuple(rules),
            retry_after,
            chance,
        )
        for now, identity, result, ring, rules, retry_after, chance in given_cases
    ]
    told: list[list[Any]] = harness()(args=[0, encode(sent)])
    return told


def known_of(ring: LaneRing) -> list[bytes]:
    return [b"%.17g" % getattr(ring, field) for field in KNOWN]


@settings(max_examples=150, deadline=None)
@given(st.lists(cases, min_size=1, max_size=20))
def test_any_visit_has_the_same_result_in_lua_and_in_python(given_cases: list[Case]) -> None:
    told = in_lua(given_cases)

    for case, (kept, place, lift, tested, _, _, _, _, _, _, *known) in zip(given_cases, told, strict=True):
        now, identity, result, ring, rules, retry_after, chance = case
        back = proxy_ring.returned(identity, ring, result, now, rules, retry_after=retry_after, chance=chance)
        assert unpack_member(kept).identity == msgspec.structs.replace(back.identity, banned_at=0.0)
        assert (place, lift) == (back.place, back.lift)
        assert tested == member_field(back.ring.tested)
        assert known == known_of(back.ring)


@settings(max_examples=100, deadline=None)
@given(st.lists(cases, min_size=1, max_size=20), st.one_of(st.integers(1, 100), st.integers(2**24 - 10, 2**32 - 10)))
def test_a_member_that_rests_comes_back_as_it_was(given_cases: list[Case], added: int) -> None:
    for case, answer in zip(given_cases, in_lua(given_cases, added), strict=True):
        now, identity, result, ring, rules, retry_after, chance = case
        score, resting, last, is_same_again = answer[6:10]
        back = proxy_ring.returned(identity, ring, result, now, rules, retry_after=retry_after, chance=chance)
        kept = unpack_resting(resting, int(score), last)
        # A ban is kept in whole seconds.
        assert kept.identity == msgspec.structs.replace(back.identity, banned_at=ceil(back.identity.banned_at))
        assert kept.added == added
        assert is_same_again == 1


@settings(max_examples=150, deadline=None)
@given(st.lists(cases, min_size=1, max_size=20))
def test_what_a_state_says_is_what_the_rules_say_of_the_member(given_cases: list[Case]) -> None:
    """The short way of lease and settle, for pools without a hold and rings that are not tested or blocked."""
    told = in_lua(given_cases)

    for (now, identity, _, _, _, _, _), (_, _, _, _, better, plain, *_) in zip(given_cases, told, strict=True):
        back = proxy_ring.returned(identity, LaneRing(), MemberResult.GOOD, now, PoolRules(hold=1)).identity
        assert better == (None if identity.slow else packed(back)[MEMBER_FRONT_BYTES:])
        has_all_turns = identity.strikes == 0 and proxy_ring.share_of_turns(identity) == 1
        assert plain == (has_all_turns and proxy_ring.interval(identity, 1.0) == 1.0)
