"""The gate: every new task passes it. Normalises URLs, checks scope, depth and traps, and drops duplicates.

A page of a shop has about eighty links, nearly all of them duplicates. So a link costs one lookup in a cache of link
texts; only links that are not in it are parsed, and only new ones become tasks.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from trotline.frontier.gate_result import CutLink, Explanation, GatePage, GateResult
from trotline.frontier.link_cache import KnownLinks
from trotline.model.harvest import Follow
from trotline.model.limits import Limits
from trotline.model.proxy_pool import lane_of, names_account, pool_of, without_pool
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import pool_names
from trotline.rules.near_duplicate_pages import DuplicateDetector, Similarity, text_number
from trotline.rules.scope import DEPTH, OTHER_HOST, Scope, out_of_scope
from trotline.rules.session_ids import without_session
from trotline.rules.task_checks import InvalidValue, checked
from trotline.rules.task_checks import pool as pool_name
from trotline.rules.traps import AHEAD, BACK, CALENDAR, CYCLES, REPEATED, TrapDetector
from trotline.rules.urls import LONGEST_TEXT, TOO_LONG, Address, Refusal, UrlRules, fingerprint, read, task_identity

TOO_MANY = "too many links"
TRAP = "trap: "
"""Prefix of the trap rules' reasons."""
_PAGE_DEPENDENT = frozenset({DEPTH, OTHER_HOST, REPEATED, CYCLES, CALENDAR, AHEAD, BACK})
"""Reasons that depend on the page that contains the link: not cached."""
CUTS_OF_A_PAGE = 200
"""Cut links of a page that get a row each in the ledger; further ones are only counted."""
CUTS_OF_A_PROCESS = 50_000
"""The same for all pages of a process: an endless site must not fill the ledger."""


class Gate:
    """The gate of one job in one process. The frontier decides what is new; the gate spares it most duplicates."""

    def __init__(
        self,
        scope: Scope,
        urls: UrlRules,
        traps: TrapDetector,
        *,
        site: str,
        retries: int,
        pool: str = "",
        pools: Callable[[], Collection[str] | None] | None = None,
        limits: Limits,
    ) -> None:
        """`pool`: the proxy pool of tasks that name none. `pools`: those that exist; None: not known here."""
        self.scope = scope
        self.traps = traps
        self.duplicates = DuplicateDetector(traps.rules)
        self._urls = msgspec.structs.replace(urls, max_length=limits.url)
        self._seed_urls = msgspec.structs.replace(urls, max_length=limits.seed_url)
        self._long_urls = msgspec.structs.replace(urls, max_length=LONGEST_TEXT)
        self._site = site
        self._retries = retries
        self._pool = pool
        self._pools = pools
        self.most_links = limits.links
        self._known = KnownLinks()
        self._cuts_left = CUTS_OF_A_PROCESS

    def filter(
        self, harvest_tasks: Sequence[Task], follows: Sequence[Follow], parent: Task, page_url: str, now: Moment
    ) -> GateResult:
        """The new tasks of one page: its handler's task drafts and the links it follows."""
        page = GatePage(page_url, parent.depth + 1, now, parent.site or self._site)
        self._filter(harvest_tasks, follows, page)
        return page.result

    def _filter(self, harvest_tasks: Sequence[Task], follows: Sequence[Follow], page: "GatePage") -> None:
        room = self.most_links
        for draft in harvest_tasks[:room]:
            self._filter_draft(draft, page)
        found = len(harvest_tasks)
        for follow in follows:
            room = max(0, self.most_links - found)
            self._filter_follow(follow, follow.urls if len(follow.urls) <= room else follow.urls[:room], page)
            self._cut_off(follow.route, follow.urls[room:], TOO_MANY, page)
            found += len(follow.urls)
        if found > self.most_links:
            page.result.refuse(TOO_MANY, found - self.most_links, page.url)

    def find_near_duplicate(
        self, lane: str, page_url: str, text: Callable[[], bytes | None], pictures: Callable[[], bytes] = bytes
    ) -> Similarity | None:
        """Is the page's text like that of earlier pages? `text` and `pictures` are called only if it is compared."""
        session = self._without_session(page_url)
        weight = self.duplicates.weight(lane) or session is not None
        if self.duplicates.off or not weight:
            return None
        found = text()
        if found is None:
            return None
        if session is not None:
            self.traps.sessions.read(without_pool(lane), session, text_number(page_url, found))
        return self.duplicates.compare(lane, page_url, found, pictures, int(weight))

    def _without_session(self, url: str) -> str | None:
        """The page's identity without a parameter that looks like a session id; None if it has none."""
        if without_session(url) is None:
            return None
        address = read(url, self._urls)
        return without_session(address.identity) if isinstance(address, Address) else None

    def filter_alike(
        self,
        similarity: Similarity,
        harvest_tasks: Sequence[Task],
        follows: Sequence[Follow],
        parent: Task,
        url: str,
        now: Moment,
    ) -> GateResult:
        """`filter` for a near-duplicate page, whose links may be dropped as a trap."""
        site = parent.site or self._site
        page = GatePage(url, parent.depth + 1, now, site, similarity.alike, similarity.repeats)
        result, room = page.result, similarity.room
        self._filter(harvest_tasks, follows, page)
        if room is not None and len(result.tasks) > room:
            result.refuse(similarity.trap, len(result.tasks) - room, url)
            for task in result.tasks[room : room + CUTS_OF_A_PAGE]:
                link = CutLink(task.url, task.route, task.fingerprint, task.lane, similarity.trap, page.depth)
                self._record_cut(link, page)
            del result.tasks[room:]
        self.duplicates.led_to(parent.lane, similarity, len(result.tasks))
        result.alike = similarity.tally
        result.examples[similarity.tally] = url
        return result

    def seeds(self, tasks: Iterable[Task], now: Moment, *, scoped: bool = True) -> GateResult:
        """Seed tasks. Scope applies to them, except to sitemaps (`scoped=False`); trap rules do not."""
        page = GatePage("", 0, now, self._site)
        for draft in tasks:
            address = read(draft.url, self._seed_urls)
            if isinstance(address, Refusal):
                page.result.refuse(address.why, example=draft.url)
            elif why := (out_of_scope(self.scope, address, draft.depth) if scoped else "") or self.pool_refusal(draft):
                page.result.refuse(why, example=draft.url)
            else:
                number = fingerprint(draft.route, task_identity(draft, address))
                if number in page.fresh:
                    page.result.known += 1
                else:
                    page.add(self._filled(draft, address, number, page))
        return page.result

    def pool_refusal(self, draft: Task | Follow) -> str:
        """Why the draft's proxy pool cannot be used; empty if it can, or if it names none."""
        if not draft.pool or self._pools is None:
            return ""
        return pool_names.refusal(draft.pool, self._pools())

    @property
    def default_pool(self) -> str:
        """The proxy pool of tasks that name none; empty: there are no proxies."""
        return pool_names.of_unnamed(self._pool, self._pools()) if self._pools is not None else self._pool

    def _checked_pool(self, draft: Task | Follow) -> str:
        """The plain value. InvalidValue: an invalid value of the handler, like any other."""
        if not draft.pool:
            return self.default_pool
        pool: str = checked("the pool of a task or of follow", draft.pool, pool_name)
        if why := self.pool_refusal(draft):
            raise InvalidValue(why)
        return pool

    def confirm(self, tasks: Iterable[Task]) -> None:
        """The frontier has accepted these tasks: add them to the cache.

        Not sooner. If they were marked when filtered and the commit then failed, the page would be visited again,
        its links would be dropped as duplicates, and they would be lost.
        """
        for task in tasks:
            self._known.add_fingerprint(task.fingerprint)
            if _by_url(task):
                self._known.add_text(task.route, task.url)

    def forget(self) -> None:
        """Clear the cache: the frontier may have lost confirmed tasks."""
        self._known = KnownLinks()

    def moved_to(self, location: str, task: Task) -> Address | str:
        """The target of a redirect of `task`, or the reason why it is refused."""
        address = read(location, self._urls)
        if isinstance(address, Refusal):
            return address.why
        return out_of_scope(self.scope, address, task.depth) or address

    def explain(
        self, link: Task | str, parent: Task | None = None, now: Moment = 0.0, *, counts: bool = False
    ) -> Explanation:
        """Why this link of `parent` (or this seed) would or would not be admitted. `counts`: update the trap rules'
        counters, so that `trotline try` reaches the same limits as a run."""
        draft = Task(url=link, route=parent.route if parent else "") if isinstance(link, str) else link
        depth = draft.depth or (parent.depth + 1 if parent else 0)
        address = read(draft.url, self._urls if parent else self._seed_urls)
        if isinstance(address, Refusal):
            return Explanation(f"refused: {address.why}", draft.url)
        if parent is None:
            why = out_of_scope(self.scope, address, depth)
        else:
            traps = self.traps.why if counts else self.traps.would
            why = self._out_of_scope(address, depth, parent.url) or traps(address, now)
        identity = task_identity(draft, address)
        why = why or self.pool_refusal(draft) or None
        if why is not None:
            return Explanation(f"refused: {why}", address.url, identity)
        known = fingerprint(draft.route, identity) in self._known
        return Explanation("known" if known else "admitted", address.url, identity)

    def _filter_follow(self, follow: Follow, urls: Sequence[str], page: "GatePage") -> None:
        pool = self._checked_pool(follow)
        if names_account(pool):
            for url in urls:
                self._filter_draft(_draft(follow, url), page)
            return
        unknown = self._known.unknown(follow.route, urls)
        page.result.known += len(urls) - len(unknown)
        for url in unknown:
            address = self._read(url, page, follow.route)
            if address is None:
                continue
            number = fingerprint(follow.route, address.identity)
            if number in page.fresh:
                page.result.known += 1
            elif number in self._known:
                page.result.known += 1
                self._known.add_text(follow.route, url)
            elif self._inside(url, address, page.depth, page, follow.route, number):
                page.add(self._task(follow, pool, address, number, page))

    def _filter_draft(self, draft: Task, page: "GatePage") -> None:
        self._checked_pool(draft)
        by_url = _by_url(draft)
        if by_url and self._known.has_text(draft.route, draft.url):
            page.result.known += 1
            return
        address = self._read(draft.url, page, draft.route)
        if address is None:
            return
        number = fingerprint(draft.route, task_identity(draft, address))
        if number in page.fresh or number in self._known:
            page.result.known += 1
        elif self._inside(draft.url, address, draft.depth or page.depth, page, draft.route, number):
            page.add(self._filled(draft, address, number, page))

    def _read(self, url: str, page: "GatePage", route: str) -> Address | None:
        why = self._known.refusal(url)
        if why is None:
            address = read(url, self._urls)
            if isinstance(address, Address):
                return address
            why = self._too_long(url, page) if address is TOO_LONG else address.why
            if why != OTHER_HOST:
                self._known.add_refusal(url, why)
            if why == TOO_LONG.why:
                self._cut_off(route, [url], why, page)
        page.result.refuse(why, example=url if why == TOO_LONG.why else "")
        return None

    def _too_long(self, url: str, page: "GatePage") -> str:
        """The reason for refusing a long link: scope, if that refuses it too, else the length."""
        address = read(url, self._long_urls)
        if not isinstance(address, Address):
            return TOO_LONG.why
        return self._out_of_scope(address, 0, page.url) or TOO_LONG.why

    def _cut_off(self, route: str, urls: Sequence[str], why: str, page: "GatePage") -> None:
        """Record some of the links that were dropped unparsed."""
        for url in urls[:CUTS_OF_A_PAGE] if self._cuts_left else ():
            address = read(url, self._seed_urls)
            if isinstance(address, Address):
                number = fingerprint(route, address.identity)
                self._record_cut(CutLink(address.url, route, number, address.lane, why, page.depth), page)

    def _record_cut(self, link: CutLink, page: "GatePage") -> None:
        if self._cuts_left and len(page.result.cut) < CUTS_OF_A_PAGE:
            self._cuts_left -= 1
            page.result.cut.append(link)

    def _out_of_scope(self, address: Address, depth: int, page_url: str) -> str | None:
        why = out_of_scope(self.scope, address, depth)
        if why is None and self.scope.same_host:
            page = read(page_url)
            if not isinstance(page, Address) or page.host != address.host:
                return OTHER_HOST
        return why

    def _inside(self, url: str, address: Address, depth: int, page: "GatePage", route: str, number: int) -> bool:
        why = self._out_of_scope(address, depth, page.url)
        if why is None:
            why = self.traps.why(address, page.now, alike=page.alike, repeats=page.repeats)
        if why is None:
            return True
        by_limit = why == DEPTH or why.startswith(TRAP)
        page.result.refuse(why, example=address.url if by_limit else "")
        if by_limit:
            self._record_cut(CutLink(address.url, route, number, address.lane, why, depth), page)
        # The same link may be admitted from another page: nearer to a seed, on its own host, or less repetitive.
        if why not in _PAGE_DEPENDENT:
            self._known.add_refusal(url, why)
        return False

    def _task(self, follow: Follow, pool: str, address: Address, number: int, page: "GatePage") -> Task:
        return Task(
            url=address.url,
            route=follow.route,
            lane=lane_of(address.lane, pool),
            fingerprint=number,
            priority=follow.priority,
            depth=page.depth,
            retries=self._retries,
            site=page.site,
            pool=pool,
            created_at=page.now,
            parent=page.url,
            chain=follow.chain,
            meta=follow.meta,
        )

    def _filled(self, draft: Task, address: Address, number: int, page: "GatePage") -> Task:
        """The draft with defaults for the fields that its author left out. A lane with a pool in its name comes from an
        exported task."""
        pool = draft.pool or pool_of(draft.lane) or self.default_pool
        return msgspec.structs.replace(
            draft,
            url=address.url,
            lane=lane_of(without_pool(draft.lane) or address.lane, pool),
            fingerprint=number,
            depth=draft.depth or page.depth,
            site=draft.site or page.site,
            pool=pool,
            created_at=draft.created_at or page.now,
            parent=draft.parent or page.url,
        )


def _by_url(task: Task) -> bool:
    """Is the URL alone the task's identity? Only then may the link's text be cached."""
    return task.key is None and task.method == "GET" and not task.body and not names_account(task.pool)


def _draft(follow: Follow, url: str) -> Task:
    return Task(
        url=url,
        route=follow.route,
        priority=follow.priority,
        pool=follow.pool,
        chain=follow.chain,
        meta=follow.meta,
    )
