"""How the life of a URL looks, for people and for machines."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from trotline.cli.formatting import count, length, safe, safe_text, safe_url, size
from trotline.cli.trace_advice import Where, now_and_next, refusal
from trotline.model.queue_job import is_queue, is_scrapy
from trotline.model.record_row import Row
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.rules.limit_cuts import cut_by, cut_page
from trotline.rules.url_history import Event, Facts, Fate, Life, Story, What, story_of

__all__ = ["Where", "lines"]

_KEYS = 5
"""Rows of a kind that are named."""
_LONG = 2000
_COLOURS = {
    Fate.READ: "green", Fate.DROPPED: "yellow", Fate.WAITING: "cyan", Fate.DELAYED: "cyan", Fate.LEASED: "cyan",
    Fate.DEAD: "red", Fate.ENDED: "yellow", Fate.REFUSED: "yellow", Fate.NEVER: "yellow",
    "done": "green", "retry": "yellow", "snooze": "cyan", "bury": "red",
}  # fmt: skip
_MARGIN = " " * 25
"""Where the text of an event begins: after its time and its name."""
_WIDER = " " * 33
"""And after its outcome."""


def lines(facts: Facts, where: Where, *, has_ledger: bool, width: int) -> list[str]:
    story = story_of(facts)
    found = [click.style(safe_url(facts.asked, _LONG), bold=True)]
    if facts.same_as and facts.same_as != facts.asked:
        found += _wrapped(f"is the same page as {safe_url(facts.same_as, _LONG)}", "  ", width)
    found += ["", *_headline(facts, story, where, width)]
    if story.lives:
        found += ["", *_lives(facts, story, width)]
    if facts.rows:
        found += ["", *_rows(facts, width)]
    now, next_ = now_and_next(facts, story, where, has_ledger=has_ledger)
    if now:
        found += ["", *_wrapped(" ".join(now), "", width)]
    if next_:
        wide = max(len(what) for what, _ in next_)
        found += ["", *(f"{what:<{wide}}  {click.style(command, bold=True)}" for what, command in next_)]
    return found


def _wrapped(text: str, indent: str, width: int, first: str | None = None) -> list[str]:
    """Lines of at most `width` columns; a URL that is longer stays whole, so that it can be copied."""
    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _headline(facts: Facts, story: Story, where: Where, width: int) -> list[str]:
    said = click.style(_fate(facts, story, where), fg=_COLOURS[story.fate], bold=True)
    about = [f"job {safe(where.job.id)}"]
    if story.identity is not None:
        route = safe(story.identity.route)
        about += [*([f"route {route}"] if route else []), f"id {story.identity.id}"]
    elif facts.lane:
        about.append(f"lane {safe(facts.lane)}")
    return [said, *_wrapped(", ".join(about), "  ", width)]


def _limit(why: str, where: Where) -> str:
    """The limit that left a link out, as the summary of the run names it."""
    cut = cut_by(why, where.job.rules.own_limits)
    return refusal(why) if cut is None else f"{refusal(why)}, {cut.what} ({cut.advice})"


def _fate(facts: Facts, story: Story, where: Where) -> str:
    there = story.identity.whereabouts if story.identity else None
    match story.fate:
        case Fate.READ:
            return f"read: {_harvest(story.last, len(facts.rejected))}" if story.last else "read"
        case Fate.DROPPED:
            return f"visited, but not read: {safe_text(story.why)}"
        case Fate.DEAD:
            cut = cut_page(story.why, where.job.rules.own_limits)
            return f"dead: {safe_text(story.why)}" + (f" ({cut.advice})" if cut is not None else "")
        case Fate.WAITING if there is not None and there.chain:
            return f"waits for step {safe_url(there.waits_for, _LONG)} of chain {safe(there.chain)}"
        case Fate.WAITING:
            return "waiting for its turn"
        case Fate.DELAYED:
            return f"waiting: due in {length(there.due_in)}" if there else "waiting"
        case Fate.LEASED:
            return "being visited now"
        case Fate.REFUSED if story.last is not None:
            return f"refused: {_limit(story.why, where)} at {safe_url(story.last.parent, _LONG)}"
        case Fate.REFUSED:
            return f"never entered: {refusal(story.why)}"
        case Fate.ENDED:
            return "visited"
        case _ if is_scrapy(where.job):
            return "cannot tell: not found by its URL"
        case _ if not (where.file or is_queue(where.job)):
            return "not found without the spider's file"
        case _:
            return "never seen by this job"


def _harvest(visit: VisitRow, rejected: int = 0) -> str:
    bad = f", {count(rejected, 'record')} rejected" if rejected else ""
    return f"{_some(visit.records, 'record')}{bad}, {_some(visit.children, 'new link')}"


def _some(number: int, noun: str) -> str:
    return count(number, noun) if number else f"no {noun}"


# The timeline


def _lives(facts: Facts, story: Story, width: int) -> Iterator[str]:
    if facts.earlier:
        yield click.style("earlier visits are left out (--limit)", dim=True)
    shown = {facts.asked, facts.same_as}
    for place, life in enumerate(story.lives):
        if place:
            yield ""
        several = len(story.lives) > 1 or life.job != facts.job
        which = f", job {safe(life.job)}, route {safe(life.route)}" if several else ""
        yield from _life(life, which, shown, width)


def _life(life: Life, which: str, shown: set[str], width: int) -> Iterator[str]:
    day = ""
    for event in life.events:
        today = _time(event.at, "%Y-%m-%d") if event.at else day
        if today != day:
            yield click.style(f"{today} UTC{which}", dim=True)
            day, which = today, ""
        yield from _event(event, shown, width)


def _time(at: Moment, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _event(event: Event, shown: set[str], width: int) -> Iterator[str]:
    at = _time(event.at, "%H:%M:%S.%f")[:12] if event.at else ""
    if event.visit is None or event.what is What.REFUSED:
        yield from _wrapped(_said(event), _MARGIN, width, f"  {at:<12}  {event.what:<8} ")
        return
    visit = event.visit
    head = f"  {at:<12}  {_visit(event):<8} {visit.outcome:<7} "
    first, *rest = _wrapped(_request(visit), _WIDER, width, head)
    by = f"by {safe(visit.worker)}" + (f" through {safe(visit.proxy)}" if visit.proxy else "")
    fits = not rest and len(first) + 2 + len(by) <= width
    # Colours have no width: they are put in when the lines are cut already.
    yield first.replace(f" {visit.outcome} ", f" {click.style(visit.outcome, fg=_COLOURS.get(visit.outcome))} ", 1) + (
        click.style(f"  {by}", dim=True) if fits else ""
    )
    yield from rest
    for text in _places(visit, shown):
        yield from _wrapped(text, _WIDER, width)
    if not fits:
        yield click.style(_WIDER + by, dim=True)


def _visit(event: Event) -> str:
    return f"visit {event.count}" if event.count else "visit"


def _said(event: Event) -> str:
    match event.what:
        case What.FOUND if event.parent:
            depth = f", {count(event.depth, 'link')} from a seed" if event.depth else ""
            return f"on {safe_url(event.parent, _LONG)}{depth}"
        case What.REFUSED:
            why = refusal(event.visit.why) if event.visit else ""
            return f"{why}, on {safe_url(event.parent, _LONG)}, {count(event.depth, 'link')} from a seed"
        case What.FOUND:
            return "as a seed, or pushed"
        case What.REVIVED:
            return "from the graveyard, with a fresh start"
        case _:
            return "its worker died, and it went to another" + (f" ({event.count} times)" if event.count > 1 else "")


def _request(visit: VisitRow) -> str:
    if not visit.verdict:
        return safe_text(visit.why) or "no request was sent"
    parts = [safe(f"{visit.status} {visit.verdict}" if visit.status else visit.verdict)]
    if visit.took:
        parts.append(length(visit.took))
    if visit.size:
        parts.append(size(visit.size))
    if visit.outcome == "done" and not visit.why:
        parts.append(_harvest(visit))
    elif visit.why not in ("moved", f"{visit.verdict}: {visit.status}"):
        parts.append(safe_text(visit.why))
    return ", ".join(parts)


def _places(visit: VisitRow, shown: set[str]) -> Iterator[str]:
    if visit.url not in shown:
        shown.add(visit.url)
        yield f"as {safe_url(visit.url, _LONG)}"
    if visit.moved_to:
        shown.add(visit.moved_to)
        yield f"to {safe_url(visit.moved_to, _LONG)}"


def _rows(facts: Facts, width: int) -> Iterator[str]:
    sites = len({row.site for row in facts.rows})
    for kind, number in Counter(row.kind for row in facts.rows).items():
        keys = [_key(row, named=sites > 1) for row in facts.rows if row.kind == kind]
        named = ", ".join(keys[:_KEYS]) + (f" and {count(number - _KEYS)} more" if number > _KEYS else "")
        yield from _wrapped(f"{count(number, 'row')} of {safe(kind, 60)}: {named}", " " * 8, width, "stored  ")


def _key(row: Row, *, named: bool) -> str:
    """Rows of several sites may have the same key."""
    return safe(row.key, 60) + (f" of {safe(row.site, 60)}" if named else "")


# For machines
