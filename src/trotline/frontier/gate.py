"""The one door for new tasks: normalises, checks scope, depth and traps, and leaves out what is known already.

A page of a shop has about eighty links, and nearly all are known. So a link costs one look into a set of texts as
found; only what is not there is parsed, and only what is new becomes a task.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from trotline.frontier.gate_result import CutLink, Explained, Sifted, SiftedPage
from trotline.frontier.known_links import Known
from trotline.model.harvest import Follow
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules.near_duplicates import DuplicateWatch, Likeness, text_number
from trotline.rules.scope import DEPTH, OTHER_HOST, Scope, why_out
from trotline.rules.session_ids import without_session
from trotline.rules.traps import AHEAD, BACK, CALENDAR, CYCLES, REPEATED, TrapWatch
from trotline.rules.urls import LONGEST_TEXT, TOO_LONG, Address, Refusal, UrlRules, fingerprint, read, task_identity

TOO_MANY = "too many links"
TRAP = "trap: "
"""How reasons of the trap rules begin."""
_OF_ITS_PAGE = frozenset({DEPTH, OTHER_HOST, REPEATED, CYCLES, CALENDAR, AHEAD, BACK})
"""Reasons that depend on the page that a link stands on."""
CUTS_OF_A_PAGE = 200
"""Links left out that are told one by one; further ones of the page are only counted."""
CUTS_OF_A_PROCESS = 50_000
"""The same for all pages of one gate: an endless site must not fill the ledger."""


class Gate:
    """One job's door, in one process. The frontier has the last word on what is new; the gate spares it the rest."""

    def __init__(
        self, scope: Scope, urls: UrlRules, traps: TrapWatch, *, site: str, retries: int, pool: str = "", limits: Limits
    ) -> None:
        self.scope = scope
        self.traps = traps
        self.duplicates = DuplicateWatch(traps.rules)
        self._urls = msgspec.structs.replace(urls, max_length=limits.url)
        self._seed_urls = msgspec.structs.replace(urls, max_length=limits.seed_url)
        self._long_urls = msgspec.structs.replace(urls, max_length=LONGEST_TEXT)
        self._site = site
        self._retries = retries
        self._pool = pool
        self.most_links = limits.links
        self._known = Known()
        self._cuts_left = CUTS_OF_A_PROCESS

    def sift(
        self, harvest_tasks: Sequence[Task], follows: Sequence[Follow], parent: Task, page_url: str, now: Moment
    ) -> Sifted:
        """The new tasks of one page: its handler's drafts, and the links it follows."""
        visit = SiftedPage(page_url, parent.depth + 1, now, parent.site or self._site)
        self._sift(harvest_tasks, follows, visit)
        return visit.sifted

    def _sift(self, harvest_tasks: Sequence[Task], follows: Sequence[Follow], visit: "SiftedPage") -> None:
        room = self.most_links
        for draft in harvest_tasks[:room]:
            self._sift_draft(draft, visit)
        found = len(harvest_tasks)
        for follow in follows:
            room = max(0, self.most_links - found)
            self._sift_follow(follow, follow.urls if len(follow.urls) <= room else follow.urls[:room], visit)
            self._cut_off(follow.route, follow.urls[room:], TOO_MANY, visit)
            found += len(follow.urls)
        if found > self.most_links:
            visit.sifted.refuse(TOO_MANY, found - self.most_links, visit.url)

    def recognise(
        self, lane: str, page_url: str, text: Callable[[], bytes | None], pictures: Callable[[], bytes] = bytes
    ) -> Likeness | None:
        """Has a page the text of others before it? Text and pictures are asked for only if it is looked at."""
        session = self._without_session(page_url)
        weight = self.duplicates.weight(lane) or session is not None
        if self.duplicates.off or not weight:
            return None
        found = text()
        if found is None:
            return None
        if session is not None:
            self.traps.sessions.read(lane, session, text_number(page_url, found))
        return self.duplicates.look(lane, page_url, found, pictures, int(weight))

    def _without_session(self, url: str) -> str | None:
        """The page's identity without what looks like a session id; None if nothing does."""
        if without_session(url) is None:
            return None
        address = read(url, self._urls)
        return without_session(address.identity) if isinstance(address, Address) else None

    def sift_alike(
        self,
        likeness: Likeness,
        harvest_tasks: Sequence[Task],
        follows: Sequence[Follow],
        parent: Task,
        url: str,
        now: Moment,
    ) -> Sifted:
        """The same as `sift` for a page that has the text of others: perhaps its links are not followed."""
        site = parent.site or self._site
        visit = SiftedPage(url, parent.depth + 1, now, site, likeness.alike, likeness.repeats)
        sifted, room = visit.sifted, likeness.room
        self._sift(harvest_tasks, follows, visit)
        if room is not None and len(sifted.tasks) > room:
            sifted.refuse(likeness.trap, len(sifted.tasks) - room, url)
            for task in sifted.tasks[room : room + CUTS_OF_A_PAGE]:
                link = CutLink(task.url, task.route, task.fingerprint, task.lane, likeness.trap, visit.depth)
                self._tell_cut(link, visit)
            del sifted.tasks[room:]
        self.duplicates.led_to(parent.lane, likeness, len(sifted.tasks))
        sifted.alike = likeness.tally
        sifted.examples[likeness.tally] = url
        return sifted

    def seeds(self, tasks: Iterable[Task], now: Moment, *, scoped: bool = True) -> Sifted:
        """The drafts that start a job. Scope holds for them too, unless they only list pages (sitemaps); traps do not:
        somebody wrote them down."""
        visit = SiftedPage("", 0, now, self._site)
        for draft in tasks:
            address = read(draft.url, self._seed_urls)
            if isinstance(address, Refusal):
                visit.sifted.refuse(address.why)
                visit.sifted.examples.setdefault(address.why, draft.url)
            elif scoped and (why := why_out(self.scope, address, draft.depth)) is not None:
                visit.sifted.refuse(why)
                visit.sifted.examples.setdefault(why, draft.url)
            else:
                number = fingerprint(draft.route, task_identity(draft, address))
                if number in visit.fresh:
                    visit.sifted.known += 1
                else:
                    visit.add(self._filled(draft, address, number, visit))
        return visit.sifted

    def confirm(self, tasks: Iterable[Task]) -> None:
        """The frontier has these tasks for good: from now on their links are known.

        Not sooner. If they were marked when sifted and the commit then failed, the page would be visited again,
        its links would count as known, and they would be lost for ever.
        """
        for task in tasks:
            self._known.add_fingerprint(task.fingerprint)
            if _by_url(task):
                self._known.add_text(task.route, task.url)

    def forget(self) -> None:
        """The frontier may have forgotten what was confirmed: what it says from now on counts."""
        self._known = Known()

    def moved_to(self, location: str, task: Task) -> Address | str:
        """Where a redirect of `task` leads; why not, if the scope ends before."""
        address = read(location, self._urls)
        if isinstance(address, Refusal):
            return address.why
        return why_out(self.scope, address, task.depth) or address

    def explain(
        self, link: Task | str, parent: Task | None = None, now: Moment = 0.0, *, counts: bool = False
    ) -> Explained:
        """Why this link of `parent` (or this seed) would or would not be admitted. Changes nothing, unless it `counts`
        for the traps: so the links of a page that is tried reach the same limits as in a run."""
        draft = Task(url=link, route=parent.route if parent else "") if isinstance(link, str) else link
        depth = draft.depth or (parent.depth + 1 if parent else 0)
        address = read(draft.url, self._urls if parent else self._seed_urls)
        if isinstance(address, Refusal):
            return Explained(f"refused: {address.why}", draft.url)
        why = why_out(self.scope, address, depth)
        if (
            why is None
            and parent is not None
            and self.scope.same_host
            and address.host != SiftedPage(parent.url, 0, now, "").host
        ):
            why = OTHER_HOST
        if why is None and parent is not None:
            why = self.traps.why(address, now) if counts else self.traps.would(address, now)
        identity = task_identity(draft, address)
        if why is not None:
            return Explained(f"refused: {why}", address.url, identity)
        known = fingerprint(draft.route, identity) in self._known
        return Explained("known" if known else "admitted", address.url, identity)

    def _sift_follow(self, follow: Follow, urls: Sequence[str], visit: "SiftedPage") -> None:
        unknown = self._known.unknown(follow.route, urls)
        visit.sifted.known += len(urls) - len(unknown)
        for url in unknown:
            address = self._read(url, visit, follow.route)
            if address is None:
                continue
            number = fingerprint(follow.route, address.identity)
            if number in visit.fresh:
                visit.sifted.known += 1
            elif number in self._known:
                visit.sifted.known += 1
                self._known.add_text(follow.route, url)
            elif self._inside(url, address, visit.depth, visit, follow.route, number):
                visit.add(self._task(follow, address, number, visit))

    def _sift_draft(self, draft: Task, visit: "SiftedPage") -> None:
        by_url = _by_url(draft)
        if by_url and self._known.has_text(draft.route, draft.url):
            visit.sifted.known += 1
            return
        address = self._read(draft.url, visit, draft.route)
        if address is None:
            return
        number = fingerprint(draft.route, task_identity(draft, address))
        if number in visit.fresh or number in self._known:
            visit.sifted.known += 1
        elif self._inside(draft.url, address, draft.depth or visit.depth, visit, draft.route, number):
            visit.add(self._filled(draft, address, number, visit))

    def _read(self, url: str, visit: "SiftedPage", route: str) -> Address | None:
        why = self._known.refusal(url)
        if why is None:
            address = read(url, self._urls)
            if isinstance(address, Address):
                return address
            why = self._too_long(url, visit) if address is TOO_LONG else address.why
            if why != OTHER_HOST:
                self._known.add_refusal(url, why)
            if why == TOO_LONG.why:
                self._cut_off(route, [url], why, visit)
        visit.sifted.refuse(why, example=url if why == TOO_LONG.why else "")
        return None

    def _too_long(self, url: str, visit: "SiftedPage") -> str:
        """A long link that is out of scope was not left out by the limit."""
        address = read(url, self._long_urls)
        if not isinstance(address, Address):
            return TOO_LONG.why
        why = why_out(self.scope, address, 0)
        if why is None and self.scope.same_host and address.host != visit.host:
            why = OTHER_HOST
        return why or TOO_LONG.why

    def _cut_off(self, route: str, urls: Sequence[str], why: str, visit: "SiftedPage") -> None:
        """Links that were not even looked at: a few are, so that they can be told one by one."""
        for url in urls[:CUTS_OF_A_PAGE] if self._cuts_left else ():
            address = read(url, self._seed_urls)
            if isinstance(address, Address):
                number = fingerprint(route, address.identity)
                self._tell_cut(CutLink(address.url, route, number, address.lane, why, visit.depth), visit)

    def _tell_cut(self, link: CutLink, visit: "SiftedPage") -> None:
        if self._cuts_left and len(visit.sifted.cut) < CUTS_OF_A_PAGE:
            self._cuts_left -= 1
            visit.sifted.cut.append(link)

    def _inside(self, url: str, address: Address, depth: int, visit: "SiftedPage", route: str, number: int) -> bool:
        why = why_out(self.scope, address, depth)
        if why is None and self.scope.same_host and address.host != visit.host:
            why = OTHER_HOST
        if why is None:
            why = self.traps.why(address, visit.now, alike=visit.alike, repeats=visit.repeats)
        if why is None:
            return True
        by_limit = why == DEPTH or why.startswith(TRAP)
        visit.sifted.refuse(why, example=address.url if by_limit else "")
        if by_limit:
            self._tell_cut(CutLink(address.url, route, number, address.lane, why, depth), visit)
        # The same link may pass on another page: nearer to a seed, of its own host, or unlike others.
        if why not in _OF_ITS_PAGE:
            self._known.add_refusal(url, why)
        return False

    def _task(self, follow: Follow, address: Address, number: int, visit: "SiftedPage") -> Task:
        return Task(
            url=address.url,
            route=follow.route,
            lane=address.lane,
            fingerprint=number,
            priority=follow.priority,
            depth=visit.depth,
            retries=self._retries,
            site=visit.site,
            pool=self._pool,
            created_at=visit.now,
            parent=visit.url,
            meta=follow.meta,
        )

    def _filled(self, draft: Task, address: Address, number: int, visit: "SiftedPage") -> Task:
        """The draft with what its author left open."""
        return msgspec.structs.replace(
            draft,
            url=address.url,
            lane=draft.lane or address.lane,
            fingerprint=number,
            depth=draft.depth or visit.depth,
            site=draft.site or visit.site,
            pool=draft.pool or self._pool,
            created_at=draft.created_at or visit.now,
            parent=draft.parent or visit.url,
        )


def _by_url(task: Task) -> bool:
    """Is the URL alone the task's identity? Only then may its text stand for it."""
    return task.key is None and task.method == "GET" and not task.body
