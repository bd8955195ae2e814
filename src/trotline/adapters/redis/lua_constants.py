"""Constants of the Lua scripts that are shared with Python, by the same names.

scripts.py replaces the names by the values; a .lua file may use any of them, and defines none.
"""

import json
import struct
from math import isinf

from trotline.adapters.redis import lane_view, lua_layouts, task_codec
from trotline.model.pace import FASTEST, Pace
from trotline.model.proxy_pool import ACCOUNT, ACCOUNTS, VIA, MemberResult, PoolRules
from trotline.ports.frontier import DEAD_AFTER, DEATHS, HIGH_WATER, HORIZON, KILLS
from trotline.rules import (
    adaptive_pace,
    bloom_filter,
    broker_shelves,
    chain_failures,
    counter_limits,
    lane_sharing,
    pace,
    proxy_ring,
    route_queues,
)
from trotline.rules.retries import LATER_BY

Value = float | str


def _named(module: object, *names: str) -> dict[str, Value]:
    return {name: getattr(module, name) for name in names}


def _places(prefix: str, names: tuple[str, ...]) -> dict[str, Value]:
    """Positions in an array, from 1."""
    return {f"{prefix}{name.upper()}": place for place, name in enumerate(names, 1)}


def _offsets(prefix: str, names: tuple[str, ...]) -> dict[str, Value]:
    """Offsets of the values in a flat array of rows, and the size of a row."""
    return {f"{prefix}{name.upper()}": place for place, name in enumerate((*names, "size"))}


def _form(form: struct.Struct) -> str:
    """In the syntax of Lua's struct library."""
    return form.format.replace("i", "i4").replace("I", "I4")


_RULES: dict[str, Value] = {
    "DEAD_AFTER": DEAD_AFTER,
    "HORIZON": HORIZON,
    "DEATHS": DEATHS,
    "KILLS": KILLS,
    "HIGH_WATER": HIGH_WATER,
    "LATER_BY": LATER_BY,
    **_named(
        pace,
        "BREAKER", "NEAR", "ROBOTS_GOOD_FOR", "RETRY_ALLOWANCE", "RETRY_DRIP", "FAILING", "UNCAPPED", "PAUSE",
    ),
    **_named(
        adaptive_pace,
        "FIRST_REST", "LONGEST_REST", "THROTTLE_REST", "SLOWEST_STEP", "CALM_FOR", "SHORTEST_CALM", "LONGEST_CALM",
        "RECOVER", "RISING", "JITTER", "LATENCY_WEIGHT", "USUAL_WEIGHT", "SLOWER_BY_LATENCY", "SLOWER_BY_FAILURE",
        "FORGET", "NO_TROUBLE", "DIP", "FIRST_GUESS", "NEXT_GUESS", "BAN_LIMIT", "CALMEST", "REST_SPREAD", "ENOUGH",
        "LONGER_PHASE", "INSTANT", "DOUBLINGS", "ROBOTS_AGAIN",
    ),
    **_named(lane_sharing, "IN_FORCE", "YIELD", "PORTION", "FORGETS"),
    **_named(counter_limits, "MOST_NAMES", "MOST_REJECTS", "NEVER_FOLDED", "NOT_KEPT"),
    "VERDICTS": f" {' '.join(sorted(counter_limits.VERDICTS))} ",
    **_named(
        proxy_ring,
        "UNITS", "BEST", "LEARN", "MOST_WEIGHT", "LOST_TURN", "USUAL_MARGIN", "LEAST_SHARE", "PROBATION", "CLEARED",
        "MOST_STRIKES", "SLOWER", "MOST_SLOW", "SLOW_BASE", "PARKED", "FAULTS", "FIRST_DOWN", "LONGEST_DOWN",
        "SHARE_WEIGHT", "NO_SHARE", "USUAL_SHARE", "MOST_SHARE", "SUSPICION", "BLOCKED_IF_SITE", "DOWN_DOUBLINGS",
    ),
    "NEW_QUALITY": proxy_ring.NEW,
    "RING_JITTER": proxy_ring.JITTER,
    "GAP_IN_FORCE": proxy_ring.IN_FORCE,
    "MOST_FAULTS": 65535,
    "FREE_INTERVAL": 1.0 / FASTEST,
    "MANY_VISITS": pace.MANY,
    "USUAL_CONCURRENCY": Pace().concurrency,
    "VIA": VIA,
    "ACCOUNTS": ACCOUNTS,
    "ACCOUNT": ACCOUNT,
    "STEP_WHY": chain_failures.STEP,
    "STEP_FAILED": chain_failures.FAILED,
    "STEP_TALLY": chain_failures.TALLY,
    "LONGEST_STEP_URL": chain_failures.LONGEST_URL,
    "BLOCK_BYTES": bloom_filter.BLOCK // 8,
    "PER_PARTITION": bloom_filter.PER_PARTITION,
    **_named(broker_shelves, "LANE_SHARE", "OVERFLOWS", "PARCEL_TASKS", "PARCEL_BYTES", "WINDOW", "BAND_SLACK"),
    "SHELF_BANDS": " ".join(map(str, broker_shelves.BANDS)),
    "SHELF_LAST": len(broker_shelves.BANDS),
    "QUEUE_SPAN": route_queues.SPAN,
    "MOST_QUEUES": route_queues.MOST_QUEUES,
}  # fmt: skip

_LAYOUTS: dict[str, Value] = {
    **_places("", lua_layouts.LANE),
    "STAMP": 1,
    **_places("MEMBER_", lua_layouts.MEMBER),
    **_places("RING_", lua_layouts.RING),
    **_offsets("TAKEN_", lua_layouts.TAKEN),
    **_places("RULE_", PoolRules.__struct_fields__),
    **{f"PLACE_{place.name}": place.value for place in proxy_ring.Place},
    **{f"LIFT_{lift.name}": lift.value for lift in proxy_ring.Lift},
    **{f"RESULT_{result.name}": result.value for result in MemberResult},
    **_places("BOUND_", (*pace.Bounds.__struct_fields__, "gap")),
    **{state.name: number for number, state in enumerate(lane_view.STATES)},
    "MOST_LEVELS": lane_view.MOST_LEVELS,
    "MOST_QUEUED_LEVELS": lane_view.MOST_QUEUED_LEVELS,
    **_offsets("CLAIM_", lua_layouts.CLAIM),
    **_offsets("TASK_", lua_layouts.NewTask._fields),
    **_offsets("MOVED_", lua_layouts.MovedTask._fields),
    **{f"END_{kind.name}": kind.value for kind in lua_layouts.EndKind},
    **_places("MORE_", lua_layouts.EndingMore._fields),
    **_offsets("REJECT_", lua_layouts.RejectedRow._fields),
    **_offsets("REVISIT_", lua_layouts.RevisitRow._fields),
    **_places("REPLY_", lua_layouts.LeaseReply._fields),
    **_offsets("VIEW_", lua_layouts.LaneRow._fields),
    **_offsets("PARCEL_", lua_layouts.ParcelRow._fields),
    **_places("LAYER_", bloom_filter.Layer.__struct_fields__),
}

_FORMS: dict[str, Value] = {
    "BOOKS_FORM": lua_layouts.BOOKS_FORM,
    "STRUGGLING": lua_layouts.STRUGGLING,
    "CALM": lua_layouts.CALM,
    "SHARED_FORM": _form(lua_layouts.SHARED_LANE),
    "SHARED_BYTES": lua_layouts.SHARED_LANE.size,
    "CALM_FORM": _form(lua_layouts.CALM_LANE),
    "CALM_BYTES": lua_layouts.CALM_LANE.size,
    "VIEW_COUNTS_FORM": _form(lua_layouts.LANE_COUNTS),
    "VIEW_PACE_FORM": _form(lua_layouts.LANE_PACE),
    "BOUNDS_FORM": _form(lua_layouts.BOUNDS),
    "BOUNDS_BYTES": lua_layouts.BOUNDS.size,
    "JOB_BOUNDS_FORM": _form(lua_layouts.JOB_BOUNDS),
    "CLAIM_FORM": _form(lua_layouts.PACKED_CLAIM),
    "CLAIM_BYTES": lua_layouts.PACKED_CLAIM.size,
    "MEMBER_FORM": lua_layouts.MEMBER_FORM,
    "MEMBER_BYTES": lua_layouts.MEMBER_BYTES,
    "MEMBER_ID_BYTES": lua_layouts.MEMBER_ID_BYTES,
    "MEMBER_FRONT": lua_layouts.MEMBER_FRONT_BYTES,
    "MEMBER_PARTS_FORM": lua_layouts.MEMBER_PARTS_FORM,
    "MEMBER_STATE_FORM": lua_layouts.MEMBER_STATE_FORM,
    "MEMBER_NAME": lua_layouts.MEMBER_NAME_BYTES,
    "RESTING_FORM": lua_layouts.RESTING_FORM,
    "RESTING_NUMBERS": lua_layouts.RESTING_NUMBERS,
    "RESTING_SCALE": lua_layouts.RESTING_SCALE,
    "RESTING_STRIKE": lua_layouts.RESTING_STRIKE,
    "DEALT_TOGETHER": lua_layouts.DEALT_TOGETHER,
    "SET_ASIDE": lua_layouts.SET_ASIDE,
    "RING_FORM": _form(lua_layouts.PACKED_RING),
    "RING_BYTES": lua_layouts.PACKED_RING.size,
    "CALM_RING_FORM": _form(lua_layouts.CALM_RING),
    "CALM_RING_BYTES": lua_layouts.CALM_RING.size,
    "EVIDENCE_FORM": _form(lua_layouts.PACKED_EVIDENCE).replace("6s", "c6"),
    "EVIDENCE_BYTES": lua_layouts.PACKED_EVIDENCE.size,
    "RULES_FORM": _form(lua_layouts.PACKED_RULES),
    "RULES_BYTES": lua_layouts.PACKED_RULES.size,
    "RUN_FORM": _form(lua_layouts.PACKED_RUN),
    "RUN_BYTES": lua_layouts.PACKED_RUN.size,
    "TOKEN_BYTES": lua_layouts.TOKEN_BYTES,
    "KNOWN_FORM": "<I4B",
    "FAULTS_FORM": "<I2d",
    "LOAD_FORM": "<dI2I4d",
    "LOAD_BYTES": 22,
    "TOKEN_FORM": ">I6",
    "TOKENS_FORM": ">I6I6",
    "COUNTS_FORM": task_codec.COUNTS_FORM,
    "LEVEL_BYTES": task_codec.LEVEL_BYTES,
    "LANE_HEAD_BYTES": lane_view.HEAD.size,
    "LANE_LEVELS": lane_view.HEAD.size + 1,
    "PAIR_BYTES": lane_view.LEVEL.size,
    "WAKE_BYTES": lane_view.WAKE.size,
    "SPREAD_STEP": task_codec.STEP,
    "FINGERPRINT_HALF": task_codec.HALF,
    "SPREADS": 2 * task_codec.HALF / task_codec.STEP,
    # c0: a string whose length is the number before it.
    "SHELVED_FORM": _form(lua_layouts.SHELVED) + "c0",
    "PARCEL_FORM": _form(task_codec.PARCEL) + "c0",
    "GRAVE_FORM": _form(task_codec.GRAVE) + "c0I4c0",
    "REJECT_FORM": _form(task_codec.REJECT) + "c0",
    "STARTS_FORM": ">I6I2dff",
    "STARTS_BYTES": lua_layouts.TOKEN_BYTES + lua_layouts.STARTS.size,
    "NOTE_FORM": _form(lua_layouts.NOTE),
    "NOTE_BYTES": lua_layouts.NOTE.size,
    "BLOB_VERSION": task_codec.VERSION,
    "BLOB_BYTES": task_codec.HEAD.size,
    "BLOB_FINGERPRINT": task_codec.FINGERPRINT.start + 1,
    "BLOB_COUNTS": task_codec.COUNTS.start + 1,
    "BLOB_AFTER_COUNTS": task_codec.COUNTS.stop + 1,
    "BLOB_DEPTH": task_codec.DEPTH.start + 1,
    "BLOB_TEMPLATE": task_codec.TEMPLATE.start + 1,
    "BLOB_FLAGS": task_codec.FLAGS.start + 1,
    "FLAG_SHORT": task_codec.SHORT,
    "FLAG_CHAIN": task_codec.CHAIN,
    "TEMPLATE_SCHEME": task_codec.TaskTemplate.__struct_fields__.index("scheme") + 1,
    "CHAIN_FAILED": task_codec.CHAIN_FAILED,
    "CHAIN_ENTRY": task_codec.DUE.size + 1,
}

_LIMITS: dict[str, Value] = {
    "RETURNED_AT_ONCE": 500,
    "TEMPLATE_NUMBERS": lua_layouts.TEMPLATE_NUMBERS,
    "MOST_TEMPLATES": lua_layouts.MOST_TEMPLATES,
}
"""Limits that several scripts share."""

CONSTANTS: dict[str, Value] = {**_RULES, **_LAYOUTS, **_FORMS, **_LIMITS}


def lua_value(value: Value) -> str:
    """As a Lua literal."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinf(value):
        return "math.huge"
    return f"{value:.17g}"
