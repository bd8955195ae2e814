"""What operators see of rows that a frontier keeps: the same for every frontier that decides in Python."""

from collections.abc import Iterable, Sequence

from trotline.model import task_json
from trotline.model.job import InFlight, LanePace, LaneView, State
from trotline.model.time import Moment
from trotline.rules import pace, redaction
from trotline.rules.pace import Claim, Lane

Leased = tuple[bytes, str, str, int, Moment | None, Moment | None, int | None]
"""Body, lane, worker, attempt, leased_at, starts_at, member of a proxy pool."""


def in_flight(rows: Iterable[Leased], redact: Sequence[str]) -> list[InFlight]:
    found = []
    for body, lane, worker, attempt, leased_at, starts_at, member in rows:
        url, route = _page(body)
        found.append(
            InFlight(
                url=redaction.url(url, redact),
                lane=lane,
                worker=worker,
                route=route,
                attempt=attempt,
                leased_at=leased_at,
                starts_at=starts_at,
                member=member or 0,
            )
        )
    return found


def _page(body: bytes) -> tuple[str, str]:
    try:
        task = task_json.decode(body)
    except task_json.Undecodable:
        return "(undecodable)", ""
    return task.url, task.route


def lane_view(name: str, waiting: int, leased: int, state: State, lane: Lane, now: Moment, *, heeds: bool) -> LaneView:
    """`heeds`: the job obeys robots.txt."""
    rests_for = max(0.0, lane.rest_until - now)
    return LaneView(
        lane=name,
        waiting=waiting,
        leased=leased,
        interval=lane.interval,
        rests_for=rests_for,
        why=lane.rest_why if rests_for else "",
        state=state,
        concurrency=pace.allowed(lane, now, heeds=heeds),
        latency=lane.latency,
        trouble=lane.trouble,
        retry_credit=pace.capped_credit(lane, now),
    )


def lane_pace(name: str, running: int, lane: Lane, claims: Iterable[Claim], now: Moment) -> LanePace:
    """`claims`: those in force."""
    rests_for = max(0.0, lane.rest_until - now)
    return LanePace(
        lane=name,
        interval=lane.interval,
        concurrency=lane.concurrency,
        running=running,
        ordered=None if lane.ordered is None else pace.pace_of(lane.ordered),
        jobs={claim.job: pace.pace_of(claim.bounds) for claim in claims},
        crawl_delay=lane.asked,
        limit=lane.limit,
        rests_for=rests_for,
        why=lane.rest_why if rests_for else "",
        retry_credit=pace.capped_credit(lane, now),
    )
