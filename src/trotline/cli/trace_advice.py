"""How a URL stands, said in sentences, and the commands that come next."""

import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from trotline.cli.formatting import NO_INTERVAL, count, every, json_line, reason, rest, safe, safe_url
from trotline.cli.limit_cuts_view import line
from trotline.cli.outage_remedy import remedy
from trotline.commands.dead_reasons import BAD_RECORD
from trotline.config.backend_urls import repeatable
from trotline.config.backends import keeps_visits
from trotline.model.job import Job, State
from trotline.model.queue_job import ROUTE, is_queue, is_scrapy
from trotline.model.sitemap_seed import ROUTE as SITEMAP
from trotline.rules.chain_failures import STEP
from trotline.rules.limit_cuts import cuts
from trotline.rules.private_addresses import is_number, why_not_address
from trotline.rules.scope import DEPTH, EXCLUDED, HOST, NOT_INCLUDED
from trotline.rules.url_history import Facts, Fate, Story
from trotline.rules.urls import TOO_LONG

Step = tuple[str, str]
"""What for, and the command."""
_REASONS = 3
"""Of rejected records: as many are named."""
_NO_PAGE = "It led to no page: it lists none, or only what match= or the spider's scope leaves out."
_OTHER_REQUESTS = (
    "Others are not found by their URL: with dont_filter, another method, a body, or an account; nor is what "
    "scrapy-redis visited before an import."
)
_UNMATCHED = "links refused: sitemap: URL does not match"
_ADDRESSES = {
    "scheme": "only http:// and https:// are visited",
    "not a URL": "it is not a URL",
    "too long": "it is too long",
    "bad host": "its host is a name that DNS cannot know",
    "user-info": "URLs with a user name or password are not visited",
}
"""Why a text is not an address."""


def refusal(why: str) -> str:
    return _ADDRESSES.get(why) or reason(why)


class Where(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    file: str = ""
    """The spider's file; empty if it is not known."""
    changed: bool = False
    """It is not the code that the job was started with."""
    routes: tuple[str, ...] = ()
    """Of the spider; of a queue, those that were looked for."""
    sink: str
    frontier: str = ""
    """As it was given on the command line."""
    given_sink: str = ""
    """The sink, if it was given on the command line."""
    by_work: bool = False
    """The frontier is a server, or the job not the newest: `run` does not go on with it."""

    @property
    def also(self) -> str:
        """Options that commands about the same job need again."""
        return f" --frontier {shlex.quote(repeatable(self.frontier))}" if self.frontier else ""

    @property
    def also_to_store(self) -> str:
        """The same for commands that store rows."""
        return self.also + (f" --sink {shlex.quote(repeatable(self.given_sink))}" if self.given_sink else "")

    @property
    def also_to_visit(self) -> str:
        """The same for commands that visit pages: which private addresses the job may visit."""
        return self.also_to_store + "".join(f" {shlex.quote(word)}" for word in self.job.rules.allowed)


def now_and_next(facts: Facts, story: Story, where: Where, *, has_ledger: bool) -> tuple[list[str], list[Step]]:
    sentences = [*_now(facts, story, where), *_unknown(facts, story, where, has_ledger)]
    steps = list(_next(facts, story, where))
    if is_queue(where.job):
        # There is no spider's file that commands could take.
        steps = [step for step in steps if "FILE" not in step[1]]
    return sentences, steps


def _now(facts: Facts, story: Story, where: Where) -> Iterator[str]:
    match story.fate:
        case Fate.READ | Fate.DROPPED | Fate.ENDED:
            yield from _over(facts, story, where)
        case Fate.WAITING | Fate.DELAYED:
            yield from _waiting(facts, where)
        case Fate.LEASED:
            worker = safe(story.identity.whereabouts.worker) if story.identity else ""
            yield f"Worker {worker} holds it. If that dies, it goes to another within 20 s."
        case Fate.DEAD:
            yield "It lies in the graveyard and is not tried again by itself."
            if story.why.startswith(STEP):
                yield "It is revived together with the step of its chain that failed."
        case Fate.REFUSED:
            yield _keeps_out(facts, story.why)
            yield from _elsewhere(facts, story, where)
        case Fate.NEVER:
            yield _never(facts, where)


def _over(facts: Facts, story: Story, where: Where) -> Iterator[str]:
    last = story.last
    if story.why == "refused: robots.txt":
        yield "The site's robots.txt asks robots not to read it. robots=False in the spider is yours to answer for."
    if last is not None and story.fate is Fate.READ:
        if last.records and not facts.rows:
            yield "No row names this page now: what it gave was seen on another page later, or is stored elsewhere."
        elif not last.records and not last.children and not facts.rejected:
            yield _NO_PAGE if last.route == SITEMAP else "The handler found nothing in it: are the selectors right?"
    if facts.rejected:
        yield _rejected(facts)
    if last is not None and last.job != where.job.id:
        yield f"That was in {safe(last.job)}. {safe(where.job.id)} has not met it."
    elif facts.progress.finished_at is None:
        yield "It is not visited again in this job."


def _rejected(facts: Facts) -> str:
    number = len(facts.rejected)
    reasons = dict.fromkeys(safe(grave.why.removeprefix(BAD_RECORD)) for grave in facts.rejected)
    shown = "; ".join(list(reasons)[:_REASONS]) + ("; ..." if len(reasons) > _REASONS else "")
    was, are = ("was", "is") if number == 1 else ("were", "are")
    return f"{count(number, 'record')} of this page {was} rejected and {are} not stored: {shown}."


def _elsewhere(facts: Facts, story: Story, where: Where) -> Iterator[str]:
    """What other jobs have to do with a refusal."""
    job = safe(where.job.id)
    if story.last is not None and story.last.job != where.job.id:
        yield f"That was in {safe(story.last.job)}. {job} has not met it."
    elif others := {visit.job: None for visit in facts.visits if visit.job != where.job.id and visit.outcome == "done"}:
        yield f"Earlier it was visited, in {safe(', '.join(others))}; {job} left it out."


def _waiting(facts: Facts, where: Where) -> Iterator[str]:
    lane = facts.lane_view
    if facts.progress.missing:
        missing = facts.progress.missing
        yield f"It may not come: {safe(missing, 300)}; {remedy(missing, where.job)}"
    if facts.progress.state in (State.PAUSED, State.CANCELLED):
        yield f"The job is {facts.progress.state}: nothing is handed out."
    if lane is not None:
        others = f"{count(lane.waiting, 'task')} {'waits' if lane.waiting == 1 else 'wait'} in lane {safe(lane.lane)}"
        if resting := rest(lane):
            yield f"{others}, which {'is paused' if lane.paused else f'rests for {resting}'}."
        elif (interval := every(lane)) == NO_INTERVAL:
            yield f"{others}, which has no interval between starts."
        else:
            yield f"{others}, one start every {interval}."
    if not facts.workers:
        yield "No worker is running for this job."


def _keeps_out(facts: Facts, why: str) -> str:
    rule = safe(facts.rule)
    match why:
        case why if why == HOST:
            return f"The spider visits {rule or 'other hosts'}. Add {safe(facts.lane)} to its hosts=[...]."
        case why if why == EXCLUDED:
            return f"Its exclude has the pattern {rule}, which is found in this URL."
        case why if why == NOT_INCLUDED:
            return f"None of the patterns of its include is found in this URL: {rule}."
        case why if why == DEPTH:
            return "Raise max_depth in the spider, or leave it out, and run it again: a new job finds the link again."
        case "too many links":
            return "Raise links in limits=Limits(links=...) of the spider, and run it again."
        case why if why == TOO_LONG.why:
            return "Raise url in limits=Limits(url=...) of the spider, and run it again."
        case why if why.startswith("trap: "):
            return (
                "The trap rules keep it out, since crawls of such URLs do not end: traps=TrapRules(...) in the spider."
            )
        case "user-info":
            return "Write it without them, and send an Authorization header: headers= of the spider."
        case _:
            return "No spider can visit it."


def _never(facts: Facts, where: Where) -> str:
    if is_scrapy(where.job):
        return "No plain GET request of it is known to this job."
    if not where.file:
        return f"Neither the frontier nor the ledger knows it under this very URL{_as_tasks(where)}."
    if facts.progress.state is State.DRAINING:
        return "The gate would let it in, but the job is draining: nothing new is admitted."
    if left_out := cuts(facts.progress, where.job.rules.own_limits):
        shown = "; ".join(map(line, left_out))
        return f"It may be one of the links that were left out, of which only some are kept by name. Cut: {shown}."
    unmatched = facts.progress.tallies.get(_UNMATCHED, 0)
    listed = f" It may be one of the {count(unmatched, 'URL')} of sitemaps that do not match match= of the seed."
    return (
        "The gate would let it in, but no page that was read so far led to it. Try the page that should link to it: "
        f"is the link in its HTML, and does the handler follow it?{listed if unmatched else ''}"
    )


def _unknown(facts: Facts, story: Story, where: Where, has_ledger: bool) -> Iterator[str]:
    """What the answer lacks, and how to have it."""
    sink = safe_url(where.sink)
    if is_scrapy(where.job):
        yield "Scrapy keeps no visits: this is its state now, as a plain GET request."
        if story.fate is Fate.NEVER:
            yield _OTHER_REQUESTS
        return
    if is_queue(where.job):
        looked = " or ".join(repr(safe(route, 60)) for route in where.routes or (ROUTE,))
        yield f"A queue keeps no visits: this is its state now, as a task with job_type {looked}."
        if story.fate is Fate.NEVER:
            yield "Tasks with another job_type are found with --route NAME."
        return
    if not has_ledger:
        kept = "is not there" if keeps_visits(where.sink) else "keeps no visits"
        yield f"How its visits went is not known: {sink} {kept}. Name the sink of the run with --sink."
    elif story.fate is Fate.ENDED:
        yield f"{sink} has no line about it: the run had another sink (--sink), or visits=no."
    if not where.file:
        yield _without_file(story, where)
    elif where.changed and story.fate in (Fate.REFUSED, Fate.NEVER):
        yield f"{safe(where.file)} has changed since the job began: this is what its gate says now."


def _as_tasks(where: Where) -> str:
    return f", as a task of {' or '.join(safe(route, 60) for route in where.routes)}" if where.routes else ""


def _without_file(story: Story, where: Where) -> str:
    spider = safe(where.job.spider)
    name_it = f"name the file of spider {spider} with --spider FILE"
    if not where.routes:
        return f"Its routes and its scope are not known here: {name_it}."
    if story.fate is Fate.NEVER:
        return f"The spider may have rules of its own for URLs, or other routes by now: {name_it}."
    return f"The scope of the spider is not known here: {name_it}."


def _put_in(facts: Facts, where: Where, route: str) -> str:
    file = shlex.quote(safe(where.file)) if where.file else "FILE"
    if facts.progress.finished_at is None:
        url = shlex.quote(safe_url(facts.url, 2000))
        return f"echo {url} | trotline push {file} - --route {route} --job {safe(where.job.id)}{where.also}"
    seed = json_line({"url": safe_url(facts.url, 2000), "job_type": route})
    return f"echo {shlex.quote(seed)} | trotline run {file} --seeds -{where.also_to_visit}"


def _private(url: str) -> str:
    """`try` refuses private addresses, also those that the job was allowed to visit."""
    host = urlsplit(url).hostname or ""
    return " --allow-private" if host == "localhost" or (is_number(host) and why_not_address(host)) else ""


def _route(where: Where) -> str:
    return safe(where.routes[0]) if len(where.routes) == 1 else "ROUTE"


def _next(facts: Facts, story: Story, where: Where) -> Iterator[Step]:
    file = shlex.quote(safe(where.file)) if where.file else "FILE"
    spider, job = safe(where.job.spider), safe(where.job.id)
    url = shlex.quote(safe_url(facts.url or facts.asked, 2000))
    route = safe(story.identity.route) if story.identity else _route(where)
    match story.fate:
        case Fate.DEAD if story.identity is not None:
            grave = f"trotline dead {job} {story.identity.id}"
            yield "look at the grave", grave + where.also
            yield "give it a fresh start", f"{grave} --revive{where.also}"
        case Fate.WAITING | Fate.DELAYED:
            if facts.progress.state in (State.PAUSED, State.CANCELLED):
                yield "let it go on", f"trotline resume {job}{where.also}"
            elif facts.lane_view is not None and facts.lane_view.paused:
                yield (
                    "let it go on",
                    f"trotline resume {job} --lane {shlex.quote(safe(facts.lane_view.lane))}{where.also}",
                )
            if not facts.workers:
                yield "go on", f"trotline {'work' if where.by_work else 'run'} {file}{where.also_to_visit}"
            return
        case Fate.NEVER:
            yield "put it in yourself", _put_in(facts, where, route)
        case Fate.LEASED:
            return
    if facts.rejected:
        ids = " ".join(grave.id for grave in facts.rejected[:_REASONS])
        yield "look at what was rejected", f"trotline dead {job} {ids}{where.also}"
    if facts.url and route != SITEMAP:
        yield "see what comes of it now", f"trotline try {file} {route} {url}{_private(facts.url)}"
        if route == "ROUTE" and where.routes:
            yield "ROUTE is one of", safe(", ".join(where.routes))
    if story.fate in (Fate.ENDED, Fate.DROPPED):
        yield "what happened to others", f"trotline status {spider}{where.also}"
