"""The pace in Lua and the pace in Python are one: the same numbers, to the last bit, after any history."""

from functools import lru_cache
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from tests.contract.redis_servers import server

from trotline.adapters.redis.batch_codec import bounds
from trotline.adapters.redis.script_assembly import assembled
from trotline.adapters.redis.scripts import helper_text
from trotline.model.lease import LaneFeedback
from trotline.model.pace import Pace, Rate
from trotline.model.verdict import Kind
from trotline.ports.frontier import HORIZON
from trotline.rules import adaptive_pace, lane_sharing, pace
from trotline.testing.redis_server import DEBIAN

FIELDS = (
    "floor", "ceiling", "concurrency", "interval", "next_start", "rest_until", "failures", "failing_since",
    "rests", "slowed_at", "latency", "usual", "trouble", "credit", "credited_at", "limit", "sure", "lost", "phase_at",
    "answers", "last_answers", "last_phase", "asked", "asked_at", "older",
)  # fmt: skip
START = "local now\nlocal floor, max, min = math.floor, math.max, math.min\n"
HARNESS = """
local lane = {"name", "", 0, 0, 0}
lane[LEASED] = 0
local told = {}
for _, step in ipairs(cmsgpack.unpack(ARGV[1])) do
  now = step[2]
  local verb, found = step[1], {}
  if verb == "open" then open_pace(lane, step[3])
  elseif verb == "rebound" then rebound(lane, step[3], step[4])
  elseif verb == "learn" then learn(lane, step[3], step[4], step[5], step[6], step[7], step[8])
  elseif verb == "forgive" then if given_up(lane, step[3]) then forgive(lane) end
  elseif verb == "spend" then spend(lane, step[3], step[4], step[5])
  elseif verb == "reserve" then
    lane[LEASED] = step[4]
    local count, start = reserve(lane, step[3], step[5])
    for i = 1, count do
      found[i] = start
      start = start + lane[INTERVAL]
    end
    if count > 0 then lane[NEXT] = start end
  end
  found[#found + 1] = free_at(lane) or "never"
  found[#found + 1] = credit(lane)
  found[#found + 1] = credit_at(lane)
  for field = FLOOR, OLDER do found[#found + 1] = lane[field] end
  for i, value in ipairs(found) do
    if type(value) == "number" then found[i] = string.format("%.17g", value) end
  end
  found[#found + 1] = lane[WHY]
  told[#told + 1] = found
end
return told
"""

rates = st.floats(0.01, 1000.0).map(Rate)
paces = st.tuples(rates, st.integers(1, 64), rates).map(lambda parts: Pace(*parts))
seconds = st.one_of(st.just(0.0), st.floats(0.0, 5000.0))
steps = st.one_of(
    st.tuples(
        st.just("learn"), st.sampled_from(list(Kind)), seconds, seconds, seconds, st.floats(0.0, 0.999), st.booleans()
    ),
    st.tuples(
        st.just("learn"),
        st.sampled_from([Kind.BROKEN, Kind.THROTTLED, Kind.BLOCKED, Kind.OK]),
        seconds,
        st.just(0.0),
        st.just(0.0),
        st.just(0.5),
        st.booleans(),
    ),
    st.tuples(st.just("reserve"), st.integers(0, 8), st.integers(0, 64), st.booleans()),
    st.tuples(st.just("spend"), st.integers(0, 20), st.integers(0, 5), st.floats(0.0, 2.0)),
    st.tuples(st.just("forgive"), seconds),
    st.tuples(st.just("rebound"), paces, st.booleans()),
)
histories = st.lists(st.tuples(st.floats(0.0, 30.0), steps), max_size=40)


@lru_cache
def harness() -> Any:
    client = Redis.from_url(server(DEBIAN).url)
    # Without the helpers that they use themselves: these read a job.
    helpers = [[helper_text(name)] for name in ("pace", "adaptive_pace", "lane_sharing")]
    given = "local given_keys, given_args = KEYS, ARGV\n"
    return client.register_script(f"{given}{START}{assembled(helpers, HARNESS)}return answer(given_keys, given_args)")


def in_lua(history: list[tuple[Any, ...]]) -> list[list[bytes]]:
    told: list[list[bytes]] = harness()(args=[msgspec.msgpack.encode(history)])
    return told


def in_python(opened: Pace, history: list[tuple[Any, ...]]) -> list[list[bytes]]:
    told = []
    lane, running = pace.open_lane(pace.bounds_of(opened), history[0][1]), 0
    for verb, now, *rest in history:
        found: list[Any] = []
        before = lane
        if verb == "learn":
            kind, took, quiet, interval, chance, robots = rest
            lane = adaptive_pace.learn(lane, LaneFeedback(kind, took, quiet, interval, robots), now, chance)
        elif verb == "rebound":
            lane = lane_sharing.rebound(lane, pace.Bounds(*rest[0]), now, HORIZON, forget=rest[1])
        elif verb == "forgive" and pace.given_up(lane, now, rest[0]):
            lane = pace.forgiven(lane)
        elif verb == "spend":
            lane = pace.spend(lane, now, fresh=rest[0], retries=rest[1], share=rest[2])
        elif verb == "reserve":
            running = rest[1]
            starts, lane = pace.reserve(lane, now, rest[0], running, HORIZON, heeds=rest[2])
            found += starts
        if verb in ("learn", "forgive"):
            lane = pace.with_older(lane, running, before, running)
        free = pace.free_at(lane, now, running, HORIZON)
        found += ["never" if free == pace.NEVER else free, pace.credit(lane, now), pace.credit_at(lane, now)]
        found += [getattr(lane, field) for field in FIELDS]
        told.append([each.encode() if isinstance(each, str) else b"%.17g" % each for each in found])
        told[-1].append(lane.rest_why.encode())
    return told


@settings(max_examples=300, deadline=None)
@given(paces, histories)
def test_any_history_gives_the_same_numbers_in_lua_and_in_python(
    opened: Pace, drawn: list[tuple[float, tuple[Any, ...]]]
) -> None:
    now = 1_750_000_000.0
    history: list[tuple[Any, ...]] = [("open", now, bounds(opened))]
    for passed, (verb, first, *rest) in drawn:
        now += passed
        history.append((verb, now, bounds(first) if verb == "rebound" else first, *rest))

    assert in_lua(history) == in_python(opened, history)
