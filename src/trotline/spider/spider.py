"""The Spider class: settings, page handlers (routes), seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from trotline.errors import SpiderRefused
from trotline.model.client_kind import Client
from trotline.model.job import LaneRules
from trotline.model.limits import Limits
from trotline.model.merge import AuthorKey
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import NO_PROXY
from trotline.model.secret import Secret
from trotline.model.stored_file import FILE_ROUTE, Files
from trotline.model.task import NORMAL, Task
from trotline.rules import content_types, redaction
from trotline.rules.limit_cuts import own_limits
from trotline.rules.scope import Scope
from trotline.rules.secret_scope import SecretScope
from trotline.rules.task_checks import LEAST_PRIORITY, MOST_PRIORITY
from trotline.rules.traps import TrapRules
from trotline.rules.urls import Address, UrlRules
from trotline.rules.urls import read as read_url
from trotline.spider import downloads as file_route
from trotline.spider import request_checks, spider_checks
from trotline.spider.handler_failed import HandlerFailed, is_interrupt
from trotline.spider.hooks import Hooked, Hooks
from trotline.spider.merging import Merging, merge_rule, merging
from trotline.spider.page import Page
from trotline.spider.route import Handler, Key, Route
from trotline.spider.scrapy_name_hints import SPIDER, hinted
from trotline.spider.seeds import RobotsSitemaps, Seeds, Sitemap, expand, written_urls

_ANY = "*"
"""As a host: the crawl may go anywhere."""

Validator = Callable[[Page], str | bool | None]
"""Returns True, or the reason, if a page is a block page."""
LoginHandler = Callable[[Any], Any]
"""`async def log_in(session)`: True if it is logged in, else False or the reason."""
Sitemaps = str | Sitemap | RobotsSitemaps | Iterable[str | Sitemap | RobotsSitemaps]


class Spider(Hooked):
    """The author's code: a name, a pace, page handlers. Invalid settings are refused at once."""

    def __init__(
        self,
        name: str,
        *,
        pace: str | Rate = "1/s",
        lanes: Mapping[str, str | Rate | Pace] | None = None,
        concurrency: int | None = None,
        slowest: str | Rate | None = None,
        retries: int = 3,
        pool: str = "",
        hosts: Iterable[str] = (),
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        max_depth: int | None = None,
        max_pages: int | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        cookies: Mapping[str, str | Secret] | Literal[False] | None = None,
        redact: Iterable[str] = (),
        robots: bool = True,
        user_agent: str | None = None,
        client: Literal["plain", "browser"] = "plain",
        when_blocked: Literal["browser"] | None = None,
        insecure_hosts: Iterable[str] = (),
        types: str | Iterable[str] = content_types.PAGES,
        urls: UrlRules | None = None,
        traps: TrapRules | None = None,
        limits: Limits | None = None,
        archive: str = "all",
        blocked: Validator | Iterable[Validator] = (),
        logged_out: str | Validator | None = None,
        queue_per_route: bool = False,
        give_up: timedelta = timedelta(minutes=30),
        deadline: str | timedelta | None = None,
        schedule: str | None = None,
        timezone: str = "UTC",
        overlap: Literal["skip", "wait"] = "skip",
        files: str | Files | None = None,
    ) -> None:
        self.name = spider_checks.name(name)
        check = spider_checks.Checks(f"spider {self.name!r}")
        self.retries = check.number("retries", retries, least=0, most=spider_checks.MOST_RETRIES)
        self.max_depth = None if max_depth is None else check.number("max_depth", max_depth, least=0)
        self.max_pages = None if max_pages is None else check.number("max_pages", max_pages, least=1)
        self.urls = None if urls is None else check.instance("urls", urls, UrlRules)
        self.traps = None if traps is None else check.instance("traps", traps, TrapRules)
        self.limits = None if limits is None else check.instance("limits", limits, Limits)
        self.pool = check.pool("pool", pool)
        self.rules = LaneRules(
            default=check.with_pool("pace", check.pace("pace", pace, concurrency, slowest), self.pool),
            lanes=check.lanes({} if lanes is None else lanes, concurrency, slowest, self.pool),
            give_up=check.patience("give_up", give_up),
            deadline=check.deadline(deadline),
            robots=check.instance("robots", robots, bool),
            redact=check.names("redact", redact),
            own_limits=own_limits(self.max_depth, self.limits, self.traps),
        )
        """The rate limits of the lanes, and other settings that are stored with a job."""
        self._scope = check.scope(hosts, include, exclude, self.max_depth)
        given = check.headers("headers", headers or {})
        self.headers, self.secret_headers = request_checks.by_secrecy(given)
        """Sent with every request of this spider."""
        # The secret ones only to the spider's own hosts (`secret_scope`).
        self.keeps_cookies = cookies is not False
        """False: no cookies are sent or kept."""
        self.cookies = {
            name: request_checks.secret(value) for name, value in check.headers("cookies", cookies or {}).items()
        }
        """The same: a cookie is often a session."""
        redaction.hide_keys(self.rules.redact)
        self.robots = self.rules.robots
        self.user_agent = None if user_agent is None else check.text("user_agent", user_agent)
        self.client = check.client("client", client)
        """The HTTP client of routes that name none."""
        self.when_blocked = check.when_blocked(when_blocked, self.client)
        """The client for one more attempt at a page that was blocked."""
        check.own_identity(self.client, self.user_agent, given)
        self.insecure_hosts = check.hosts("insecure_hosts", insecure_hosts)
        """Hosts whose certificates are not checked."""
        self.types = check.types("types", types)
        """Accepted content types; others are dropped before their body."""
        self.archive = check.archive("archive", archive)
        """Which of its pages are archived, where `--archive` is set."""
        self.blocked = check.validators("blocked", blocked)
        self.logged_out = check.logged_out(logged_out)
        """Does a page of an account say that its session has ended?"""
        self.logins: dict[str, LoginHandler] = {}
        """Account pool -> its login handler."""
        self.schedule = check.schedule(schedule, timezone, overlap)
        """When `trotline coordinate` starts jobs."""
        self._queue_per_route = check.instance("queue_per_route", queue_per_route, bool)
        self.routes: dict[str, Route] = {}
        self.hooks = Hooks()
        self.files = file_route.checked(check, files)
        """Where downloads go; None: there are none."""
        if self.files is not None:
            # An empty file is a file.
            self.page(name=FILE_ROUTE, status=200, client="plain")(file_route.read_file)
        self.merging: Merging | None = None
        """Its own rule for `trotline merge`."""

    @overload
    def page(self, handler: Handler, /) -> Route: ...
    @overload
    def page(
        self,
        handler: None = None,
        /,
        *,
        seeds: Seeds = (),
        sitemap: Sitemaps = (),
        key: Key | None = None,
        model: type | None = None,
        priority: int = NORMAL,
        name: str | None = None,
        status: int | Iterable[int] = (),
        conditional: bool = False,
        pool: str = "",
        client: Literal["plain", "browser"] | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        user_agent: str | None = None,
        cookies: Literal[False, "route"] | None = None,
        archive: str | None = None,
    ) -> Callable[[Handler], Route]: ...
    def page(
        self,
        handler: Handler | None = None,
        /,
        *,
        seeds: Seeds = (),
        sitemap: Sitemaps = (),
        key: Key | None = None,
        model: type | None = None,
        priority: int = NORMAL,
        name: str | None = None,
        status: int | Iterable[int] = (),
        conditional: bool = False,
        pool: str = "",
        client: Literal["plain", "browser"] | None = None,
        headers: Mapping[str, str | Secret] | None = None,
        user_agent: str | None = None,
        cookies: Literal[False, "route"] | None = None,
        archive: str | None = None,
    ) -> Route | Callable[[Handler], Route]:
        """Make a function the handler of a route: `@spider.page`, or `@spider.page(seeds=[...], key="sku")`.

        `seeds`, `sitemap`: where the crawl starts. `key`: the field that identifies a record. `model`: validates
        dicts. `priority`: of the route's tasks, smaller goes sooner. `name`: the function's by default. `status`:
        statuses besides 2xx that the handler gets. `conditional`: on recrawls use conditional requests; unchanged pages
        keep their rows, and their links are not followed (for leaf pages). `pool`: the proxy pool of the route's tasks,
        instead of the spider's. `client`: the HTTP client of its tasks, `archive`: which of its pages are archived,
        instead of the spider's. `headers` and `user_agent` of its requests, besides the spider's. `cookies`: False for
        none, "route" for a jar of its own.
        """

        def make(handler: Handler) -> Route:
            chosen = spider_checks.route_name(self.name, name or getattr(handler, "__name__", ""))
            check = spider_checks.Checks(f"spider {self.name!r}, route {chosen!r}")
            route = Route(
                self,
                handler,
                name=chosen,
                seeds=(seeds, *_sitemaps(sitemap)),
                key=check.key(key),
                model=check.model(model),
                priority=check.number("priority", priority, least=LEAST_PRIORITY, most=MOST_PRIORITY),
                status=check.statuses(status),
                conditional=check.instance("conditional", conditional, bool),
                pool=check.pool("pool", pool),
                client=self.client if client is None else check.client("client", client),
                request=request_checks.route_request(check, chosen, headers, user_agent, cookies),
                archive=self.archive if archive is None else check.archive("archive", archive),
            )
            check.own_identity(route.client, user_agent, headers or {})
            return self._add(route)

        return make if handler is None else make(handler)

    def login(self, pool: str) -> Callable[[LoginHandler], LoginHandler]:
        """Make an async function the login of an account pool: `@spider.login("@buyers")`.

        It gets a `LoginSession` (`get`, `post`, `user`, `password`), and returns True if it is logged in.
        """
        check = spider_checks.Checks(f"spider {self.name!r}, login")

        def make(handler: LoginHandler) -> LoginHandler:
            request_checks.accounts_have_cookies(check, pool, keeps=self.keeps_cookies)
            self.logins[check.account_pool(pool, self.logins)] = check.login(handler)
            return handler

        return make

    @overload
    def merge(self, handler: AuthorKey, /) -> AuthorKey: ...
    @overload
    def merge(
        self,
        handler: None = None,
        /,
        *,
        by: str | Iterable[str] = (),
        prefer: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Callable[[AuthorKey], AuthorKey]: ...
    def merge(
        self,
        handler: AuthorKey | None = None,
        /,
        *,
        by: str | Iterable[str] = (),
        prefer: Mapping[str, str] | None = None,
        **more: Any,
    ) -> AuthorKey | Callable[[AuthorKey], AuthorKey]:
        """Make a function the rule for which records are one thing: `@spider.merge`. It gets a `Record`; records with
        the same answer are one thing, None is no answer.

        `by`: criteria besides the function. `prefer`: field -> which source's value counts. `more`: `text`,
        `merge_from`, `review_from`, `within_site` (docs/reference/spider.md).
        """
        whose = f"spider {self.name!r}, merge"
        rule = merge_rule(whose, by=by, prefer=prefer or {}, **more)

        def make(handler: AuthorKey) -> AuthorKey:
            self.merging = merging(whose, rule, handler)
            return handler

        return make if handler is None else make(handler)

    def _add(self, route: Route) -> Route:
        if route.name in self.routes:
            raise SpiderRefused(
                f"spider {self.name!r} has two routes named {route.name!r}",
                hint='Rename one of the functions, or write @spider.page(name="...").',
            )
        check = spider_checks.Checks(f"spider {self.name!r}, route {route.name!r}")
        request_checks.accounts_have_cookies(check, route.pool, keeps=route.keeps_cookies)
        self.routes[route.name] = route
        lanes = spider_checks.through(self.rules.lanes, route.pool)
        queues = spider_checks.queues(self.name, self.routes) if self._queue_per_route else ()
        self.rules = msgspec.structs.replace(self.rules, lanes=lanes, queues=queues, routes=tuple(self.routes))
        return route

    @property
    def pools(self) -> tuple[str, ...]:
        """The proxy pools that the spider and its routes name."""
        named = (self.pool, *(route.pool for route in self.routes.values()), *self.logins)
        return tuple(dict.fromkeys(pool for pool in named if pool not in ("", NO_PROXY)))

    @property
    def clients(self) -> frozenset[Client]:
        """The HTTP clients that pages of this spider may be fetched with."""
        named = {self.client, *(route.client for route in self.routes.values())}
        return frozenset(named if self.when_blocked is None else {*named, self.when_blocked})

    def route(self, name: str) -> Route:
        """The route of that name; SpiderRefused lists the existing ones."""
        found = self.routes.get(name)
        if found is None:
            known = ", ".join(self.routes) or "none"
            raise SpiderRefused(f"spider {self.name!r} has no route {name!r}", hint=f"It has: {known}.")
        return found

    def seeds(self) -> Iterator[Task]:
        """Task drafts, also of sitemaps, in the order of the code."""
        for route in self.routes.values():
            for seeds in route.seeds:
                yield from expand(route, seeds)

    @property
    def scope(self) -> Scope:
        """Which URLs belong to the crawl. Without `hosts`: the hosts of the seeds in the code; if seeds come from a
        file or a function, links must stay on the host of their page. `hosts=["*"]` allows all."""
        if _ANY in self._scope.hosts:
            return msgspec.structs.replace(self._scope, hosts=())
        if self._scope.hosts:
            return self._scope
        hosts = self._seed_hosts()
        return msgspec.structs.replace(self._scope, hosts=hosts, same_host=not hosts)

    @property
    def secret_scope(self) -> SecretScope:
        """The hosts to which secret headers and cookies are sent; SpiderRefused if they are unknown.

        `hosts`; without them, the hosts of the seeds in the code, and only over https if all of those are https.
        """
        of_routes = [name for route in self.routes.values() if route.request for name in route.request.secret_headers]
        if not self.secret_headers and not self.cookies and not of_routes:
            return SecretScope()
        seeds = self._seed_addresses()
        hosts = frozenset(self._scope.hosts) or frozenset(address.lane for address in seeds or ())
        if not hosts or _ANY in hosts:
            what = ", ".join([*self.secret_headers, *of_routes, *(f"cookie {name}" for name in self.cookies)])
            raise SpiderRefused(
                f"spider {self.name!r} has secrets ({what}) and does not say for which hosts",
                hint='Name the hosts that they are for: hosts=["shop.example"]. They are sent to no other host.',
            )
        return SecretScope(hosts, secure=bool(seeds) and all(one.url.startswith("https:") for one in seeds or ()))

    def says_blocked(self, page: Page) -> str:
        """Why the spider's own validators call this a block page; empty if they do not. HandlerFailed if one raises."""
        for validator in self.blocked:
            if said := _said(validator, page):
                return said
        return ""

    def says_logged_out(self, page: Page) -> str:
        """Why the page says that the session of its account has ended; empty if it does not. HandlerFailed if the check
        raises."""
        if isinstance(self.logged_out, str):
            return f"it has {self.logged_out}" if page.css(self.logged_out) else ""
        return "" if self.logged_out is None else _said(self.logged_out, page)

    def _seed_hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(address.host for address in self._seed_addresses() or ()))

    def _seed_addresses(self) -> list[Address] | None:
        found: list[Address] = []
        for route in self.routes.values():
            for seeds in route.seeds:
                written = written_urls(seeds)
                if written is None:
                    # A file or a function may give any host: guessing hosts would silently drop its seeds.
                    return None
                found += [address for address in map(read_url, written) if isinstance(address, Address)]
        return found

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name, SPIDER)

    def __repr__(self) -> str:
        return f"<Spider {self.name}: {', '.join(self.routes) or 'no routes'}>"


def _said(validator: Validator, page: Page) -> str:
    """The reason that it gives; its name if it only says True."""
    try:
        said = validator(page)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if is_interrupt(error):
            raise
        raise HandlerFailed.of(error, validator) from error
    if not said:
        return ""
    return said if isinstance(said, str) else getattr(validator, "__name__", "validator")


def _sitemaps(given: Sitemaps) -> tuple[Any, ...]:
    if isinstance(given, str | Sitemap | RobotsSitemaps):
        given = (given,)
    return tuple(Sitemap(one) if isinstance(one, str) else one for one in given)
