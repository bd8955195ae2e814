"""What became of a URL: where it was found, each visit, what was stored, and why it is absent."""

from aiohttp import web

from trotline.model.job import Job
from trotline.model.queue_job import is_queue, is_scrapy
from trotline.rules.limit_cuts import cut_by, cut_page
from trotline.rules.url_history import Facts, Fate, Story, story_of
from trotline.web.api import trace as api
from trotline.web.api.types import Url
from trotline.web.pages import formatting
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.route_table import Call

_STATES = {
    Fate.READ: "ok", Fate.DROPPED: "warning", Fate.WAITING: "waiting", Fate.DELAYED: "waiting",
    Fate.LEASED: "running", Fate.DEAD: "dead", Fate.ENDED: "ok", Fate.REFUSED: "warning", Fate.NEVER: "unknown",
}  # fmt: skip
"""Colour of the word."""


class TraceQuery(PageQuery, frozen=True):
    url: Url = ""
    alone: bool = True
    """Only visits of this job."""


async def page(call: Call) -> web.Response:
    asked: TraceQuery = call.query
    _, frame = await framed(call, "trace")
    # It may look through many lanes: once is enough.
    frame["stream"] = ""
    if not asked.url.strip():
        return call.site.pages.page("trace.html", call.who, **frame, url="", facts=None)
    found = await api.look_up(call, asked.url.strip(), alone=asked.alone, limit=50)
    story = story_of(found.facts)
    return call.site.pages.page(
        "trace.html",
        call.who,
        **frame,
        url=asked.url.strip(),
        alone=asked.alone,
        facts=found.facts,
        story=story,
        state=_STATES[story.fate],
        sentence=_said(found.facts, story, found.job, spider_known=found.spider_known),
        visits_kept=found.visits_kept,
        spider_known=found.spider_known,
    )


def _said(facts: Facts, story: Story, job: Job, *, spider_known: bool) -> str:
    """In one sentence."""
    there = story.identity.whereabouts if story.identity is not None else None
    own = job.rules.own_limits
    match story.fate:
        case Fate.READ if story.last is not None:
            records, links = (
                formatting.counted(story.last.records, "record"),
                formatting.counted(story.last.children, "new link"),
            )
            return f"Read: {records}, {links}."
        case Fate.DROPPED:
            return f"Visited, but not read: {story.why}."
        case Fate.DEAD:
            cut = cut_page(story.why, own)
            return f"Dead: {story.why}" + (f" ({cut.advice})" if cut is not None else "") + "."
        case Fate.WAITING if there is not None and there.chain:
            return f"Waits for an earlier step of chain {there.chain}."
        case Fate.WAITING:
            return f"Waits for its turn{_rest(facts)}."
        case Fate.DELAYED if there is not None:
            return f"Waits: due in {formatting.length(there.due_in)}."
        case Fate.LEASED:
            return f"Being visited now{f' by {there.worker}' if there is not None and there.worker else ''}."
        case Fate.REFUSED:
            cut = cut_by(story.why, own)
            return f"Not admitted: {cut.what if cut is not None else story.why}{f' ({cut.advice})' if cut else ''}."
        case Fate.NEVER if is_scrapy(job):
            return "Cannot tell: no plain GET request of it is known to this job. One with dont_filter is not found."
        case Fate.NEVER if not (spider_known or is_queue(job)):
            return "Not found: without the spider's code its rules for URLs are not known."
        case Fate.NEVER:
            return "Never seen by this job: no page that was read links to it, and it was not a seed."
        case _:
            return "Visited."


def _rest(facts: Facts) -> str:
    view = facts.lane_view
    if view is None:
        return ""
    if view.rests_for > 0:
        return f"; its lane rests for {formatting.length(view.rests_for)}: {view.why}"
    return f"; {formatting.count(view.waiting)} wait in its lane"


ROUTES = (job_page("/trace", "What became of a URL.", page, TraceQuery),)
