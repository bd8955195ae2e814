"""The history of a URL for `trotline trace`: events in order and current status, from ledger, frontier and gate."""

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from trotline.model.job import Grave, LaneView, Progress, TaskStatus
from trotline.model.record_row import Row
from trotline.model.time import Moment
from trotline.model.visit_row import REFUSED, VisitRow
from trotline.rules.scope import DEPTH, EXCLUDED, HOST, NOT_INCLUDED, Scope

UNKNOWN = TaskStatus(state="unknown")
_LIVING = ("leased", "waiting", "delayed", "dead")
"""States of tasks that the frontier still has; they precede others if a URL has several identities."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The URL as a task of one route, and its state."""

    route: str
    fingerprint: int
    whereabouts: TaskStatus = UNKNOWN

    @property
    def id(self) -> str:
        return f"{self.fingerprint & 0xFFFFFFFFFFFFFFFF:016x}"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    """The job in question; visits may be of other jobs of the spider."""
    asked: str
    """As the user typed it."""
    url: str = ""
    """The normalised URL; empty if it is invalid, then `refusal` says why."""
    same_as: str = ""
    """The identity: equal for all URLs of the same page."""
    lane: str = ""
    refusal: str = ""
    """Why the gate would refuse it: "host", "trap: session id"; empty if it would not, or if unknown."""
    rule: str = ""
    """The part of the spider's scope that refuses it: hosts, pattern."""
    identities: tuple[Identity, ...] = ()
    visits: tuple[VisitRow, ...] = ()
    """The oldest first."""
    earlier: bool = False
    """There are older visits."""
    rows: tuple[Row, ...] = ()
    rejected: tuple[Grave, ...] = ()
    """Records of the page that failed validation in this job, and are not stored."""
    progress: Progress
    lane_view: LaneView | None = None
    """Of the lane it waits in."""
    workers: int = 0
    """Running workers."""


class Fate(StrEnum):
    READ = "read"
    DROPPED = "dropped"
    """Visited without a page to read: gone, unwanted, forbidden by robots.txt."""
    WAITING = "waiting"
    DELAYED = "delayed"
    """Waiting for a retry, or for `not_before`."""
    LEASED = "leased"
    DEAD = "dead"
    ENDED = "ended"
    """Visited; the result was not stored."""
    REFUSED = "refused"
    """Never admitted, and the gate would refuse it."""
    NEVER = "never seen"


class What(StrEnum):
    FOUND = "found"
    REFUSED = "refused"
    """A limit or a trap rule dropped the link."""
    VISIT = "visit"
    LOST = "lost"
    """Attempts that were not settled: their worker died."""
    REVIVED = "revived"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the history of a task."""

    what: What
    at: Moment = 0.0
    """0: unknown."""
    parent: str = ""
    """FOUND: the page; empty for a seed."""
    depth: int = 0
    """FOUND: links from a seed; 0 if unknown."""
    count: int = 0
    """VISIT: the number of this visit, 0 if earlier ones are missing. LOST: how many workers died."""
    visit: VisitRow | None = None


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """The events of one task in one job. A URL has several if several routes or jobs visit it."""

    route: str
    fingerprint: int
    job: str
    events: tuple[Event, ...]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    fate: Fate
    why: str = ""
    lives: tuple[Life, ...] = ()
    """By the time of their first event."""
    last: VisitRow | None = None
    """The visit that decided it."""
    identity: Identity | None = None
    """The one that `fate` is about; None if the URL was never admitted."""


def story_of(facts: Facts) -> Story:
    """The history of the URL and its current status."""
    identity = _foremost(facts.identities)
    fate, why, last = _fate(facts, identity)
    return Story(fate=fate, why=why, lives=tuple(_lives(facts, identity)), last=last, identity=identity)


def _foremost(identities: Sequence[Identity]) -> Identity | None:
    for state in (*_LIVING, "shelved", "ended"):
        for identity in identities:
            if identity.whereabouts.state == state:
                return identity
    return None


def _fate(facts: Facts, identity: Identity | None) -> tuple[Fate, str, VisitRow | None]:
    if identity is not None and identity.whereabouts.state in _LIVING:
        return Fate(identity.whereabouts.state), identity.whereabouts.why, None
    visits = [visit for visit in facts.visits if visit.outcome != REFUSED]
    ended = [visit for visit in visits if visit.outcome in ("done", "bury")]
    refused = [visit for visit in facts.visits if visit.outcome == REFUSED]
    own = [visit for visit in ended if identity and (visit.job, visit.fingerprint) == (facts.job, identity.fingerprint)]
    if here := _only_refused_here(facts, identity, refused):
        return Fate.REFUSED, here.why, here
    if ended:
        last = (own or ended)[-1]
        if last.outcome == "bury":
            return Fate.DEAD, last.why, last
        return (Fate.DROPPED, last.why, last) if last.why else (Fate.READ, "", last)
    if identity is not None and identity.whereabouts.state == "shelved" and not visits:
        # No visit of it is known: it waits at the broker.
        return Fate.WAITING, "", None
    if identity is not None or visits or facts.rejected:
        return Fate.ENDED, "", None
    if refused:
        return Fate.REFUSED, refused[-1].why, refused[-1]
    return (Fate.REFUSED, facts.refusal, None) if facts.refusal else (Fate.NEVER, "", None)


def _only_refused_here(facts: Facts, identity: Identity | None, refused: Sequence[VisitRow]) -> VisitRow | None:
    """The link that this job dropped, if that is all it did with the URL; visits of other jobs do not count."""
    if identity is not None or any(visit.job == facts.job for visit in facts.visits if visit.outcome != REFUSED):
        return None
    return next((visit for visit in reversed(refused) if visit.job == facts.job), None)


def _lives(facts: Facts, identity: Identity | None) -> list[Life]:
    grouped: dict[tuple[str, int, str], list[VisitRow]] = {}
    for visit in facts.visits:
        if visit.outcome != REFUSED:
            grouped.setdefault((visit.job, visit.fingerprint, visit.route), []).append(visit)
    lives = [
        Life(route=route, fingerprint=number, job=job, events=tuple(_events(visits, whole=not facts.earlier)))
        for (job, number, route), visits in grouped.items()
    ]
    if identity is not None and (facts.job, identity.fingerprint, identity.route) not in grouped:
        lives += _unvisited(identity, facts.job)
    lives += [_left_out(visit) for visit in facts.visits if visit.outcome == REFUSED]
    return sorted(lives, key=lambda life: life.events[0].at)


def _unvisited(identity: Identity, job: str) -> list[Life]:
    there = identity.whereabouts
    if not there.created_at and not there.parent:
        return []
    found = Event(what=What.FOUND, at=there.created_at, parent=there.parent)
    return [Life(route=identity.route, fingerprint=identity.fingerprint, job=job, events=(found,))]


def _left_out(link: VisitRow) -> Life:
    event = Event(what=What.REFUSED, at=link.found_at, parent=link.parent, depth=link.depth, visit=link)
    return Life(route=link.route, fingerprint=link.fingerprint, job=link.job, events=(event,))


def _events(visits: Sequence[VisitRow], *, whole: bool) -> list[Event]:
    """`whole`: the first visit is among them."""
    first = visits[0]
    # A seed may start with a number of attempts; a link never does.
    expected = 0 if whole and first.parent else first.attempt
    found_at = min(first.found_at or first.leased_at, first.leased_at)
    events = [Event(what=What.FOUND, at=found_at, parent=first.parent, depth=first.depth)]
    for number, visit in enumerate(visits, 1):
        if visit.attempt < expected:
            events.append(Event(what=What.REVIVED))
        elif visit.attempt > expected:
            events.append(Event(what=What.LOST, count=visit.attempt - expected))
        events.append(Event(what=What.VISIT, at=visit.leased_at, count=number if whole else 0, visit=visit))
        expected = visit.attempt + (visit.outcome in ("retry", "bury"))
    return events


def rule_behind(scope: Scope, url: str, why: str) -> str:
    """The part of the spider's scope that refuses the URL."""
    if why == HOST:
        return ", ".join(sorted(scope.hosts))
    if why == EXCLUDED:
        return next((pattern for pattern in scope.exclude if re.search(pattern, url)), "")
    if why == NOT_INCLUDED:
        return ", ".join(scope.include)
    return str(scope.max_depth) if why == DEPTH else ""
