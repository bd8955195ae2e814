"""Validates the settings of a spider when it is created: what is wrong, and what to write instead."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, TypeVar

from trotline.errors import SpiderRefused
from trotline.model.client_kind import EXTRA, Client
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import NO_PROXY, base_pool, is_account_pool, lane_of, pool_of
from trotline.model.schedule import Overlap, Schedule
from trotline.model.secret import Secret
from trotline.model.time import Seconds, seconds
from trotline.rules import content_types, pool_names, schedules
from trotline.rules.archive_choice import ArchiveChoice
from trotline.rules.client_headers import client_header
from trotline.rules.route_queues import MOST_QUEUES
from trotline.rules.scope import Scope
from trotline.rules.task_checks import MOST_RETRIES as MOST_RETRIES
from trotline.rules.task_checks import said, shown
from trotline.spider import css_query

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME_HINT = "A name has 1 to 64 letters, digits, - or _."
_BREAKS = re.compile(r"[\r\n\0\ud800-\udfff]")
"""Line breaks and lone surrogates: neither can be sent in a header."""
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|[0-9a-f:]+")
_USUAL_SLOWEST = Pace().slowest
MOST_AT_ONCE = 10_000
LONGEST_DEADLINE: Seconds = 366 * 86400.0
_DEADLINE_HINT = 'Give the time that a job may take, at most 366 days: deadline="6h".'
_USUAL_AT_ONCE = Pace().concurrency
_PER_PROXY_HINT = 'Name one: Spider(pool="residential", pace="1/s per proxy"). Without proxies write pace="1/s".'


def name(given: Any) -> str:
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise SpiderRefused(
            f"{shown(given)} cannot be a spider's name", hint=f'{_NAME_HINT} For example Spider("shop").'
        )
    return str.__str__(given)


def queues(spider: str, routes: Collection[str]) -> tuple[str, ...]:
    """The routes of a spider with a queue per route."""
    if len(routes) > MOST_QUEUES:
        raise SpiderRefused(
            f"spider {spider!r} has more than {MOST_QUEUES} routes, the most with queue_per_route=True",
            hint="Let similar pages share a route, or make two spiders of it: they share the pace of a host.",
        )
    return tuple(routes)


def through(lanes: Mapping[str, Pace], pool: str) -> dict[str, Pace]:
    """With the paces of hosts for the same hosts through a pool: that is a lane of its own."""
    if not pool:
        return dict(lanes)
    return {lane_of(lane, pool): pace for lane, pace in lanes.items() if not pool_of(lane)} | dict(lanes)


def route_name(spider: str, given: Any) -> str:
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise SpiderRefused(
            f"spider {spider!r}: {shown(given)} cannot be a route's name",
            hint=f'{_NAME_HINT} Name the function, or write page(name="product").',
        )
    return str.__str__(given)


class Checks:
    """The checks of one spider or route, which every message names."""

    def __init__(self, place: str) -> None:
        self.place = place

    def refuse(self, what: str, hint: str) -> SpiderRefused:
        return SpiderRefused(f"{self.place}: {what}", hint=hint)

    def number(self, field: str, given: Any, *, least: int, most: int | None = None) -> int:
        if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= (most or given):
            allowed = f">= {least}" if most is None else f"from {least} to {most:,}"
            raise self.refuse(f"{field} is {shown(given)}", f"It must be an integer {allowed}.")
        return given

    def instance(self, field: str, given: Any, kind: type[T]) -> T:
        if not isinstance(given, kind):
            raise self.refuse(f"{field} is {shown(given)}", f"Give a {kind.__name__}.")
        return given

    def text(self, field: str, given: Any) -> str:
        if not isinstance(given, str) or _BREAKS.search(given):
            raise self.refuse(f"{field} is {shown(given)}", "Give it as text in one line.")
        return str.__str__(given)

    def scope(self, hosts: Any, include: Any, exclude: Any, max_depth: int | None) -> Scope:
        try:
            return Scope(hosts=hosts, include=include, exclude=exclude, max_depth=max_depth)
        except Exception as error:
            # Classes of the author may raise anything.
            raise self.refuse(said(error), 'For example hosts=["shop.example"], include=[r"/product/"].') from error

    def headers(self, field: str, given: Any) -> dict[str, str | Secret]:
        """Values may be secrets: messages do not show them."""
        if not isinstance(given, Mapping):
            raise self.refuse(f"{field} is a {type(given).__name__}", f'Give a dict: {field}={{"name": "value"}}.')
        for name, value in given.items():
            text = value.reveal() if isinstance(value, Secret) else value
            if not isinstance(name, str) or not isinstance(text, str) or not name or _BREAKS.search(name + text):
                raise self.refuse(
                    f"the value of {shown(name)} in {field} is not a text in one line, or its name is not",
                    "Names and values are texts without line breaks; a value may be Secret.env(...).",
                )
        if field == "headers" and (name := client_header(given)):
            hint = "Leave it out: the client sets it for each request, from its URL and body."
            raise self.refuse(f"headers has {name!r}, which belongs to the HTTP client", hint)
        return dict(given)

    def names(self, field: str, given: Any) -> tuple[str, ...]:
        names = None if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
        if names is None or not all(isinstance(one, str) and one for one in names):
            raise self.refuse(f"{field} is {shown(given)}", f'Give a list of names: {field}=["ticket"].')
        return tuple(one.lower() for one in names)

    def hosts(self, field: str, given: Any) -> frozenset[str]:
        """Host names without wildcard, port or scheme."""
        names = self.names(field, given)
        for name in names:
            if not _HOST.fullmatch(name):
                raise self.refuse(f"{field} has {name!r}", f'Name each host alone: {field}=["old.example"].')
        return frozenset(names)

    def rate(self, field: str, given: Any) -> Rate:
        if isinstance(given, Rate):
            return given
        if not isinstance(given, str):
            raise self.refuse(f"{field} is {shown(given)}", 'It is text: write it like "2/s", "30/m" or "500/h".')
        try:
            return Rate.parse(str.__str__(given))
        except ValueError as error:
            raise self.refuse(f"{field}: {error}", 'For example pace="2/s": two pages a second and host.') from error

    def pool(self, field: str, given: Any) -> str:
        text = self.text(field, given)
        if text and not pool_names.POOL.fullmatch(text):
            raise self.refuse(
                f"{field} is {shown(given)}",
                "The name of a pool has letters, digits, - or _; @NAME is a pool of accounts.",
            )
        return text

    def account_pool(self, given: Any, known: Mapping[str, object]) -> str:
        text = self.pool("the pool", given)
        if not is_account_pool(text) or base_pool(text) != text:
            raise self.refuse(f"{shown(given)} is not a pool of accounts", 'Name one: @spider.login("@buyers").')
        if text in known:
            raise self.refuse(f"{text} has two login handlers", "Remove one of them.")
        return text

    def login(self, given: Any) -> Any:
        if not callable(given):
            raise self.refuse(f"{shown(given)} is not a function", "Write: async def log_in(session): ...")
        try:
            inspect.signature(given).bind(None)
        except TypeError as error:
            raise self.refuse(
                f"it cannot be called with one session ({error})", "Write: async def log_in(session): ..."
            ) from error
        return given

    def logged_out(self, given: Any) -> Any:
        if given is None or callable(given):
            return given
        if not isinstance(given, str) or not given.strip():
            raise self.refuse(
                f"logged_out is {shown(given)}", 'Give a CSS selector ("form.login"), or a function of a page.'
            )
        try:
            css_query.parse(given)
        except ValueError as error:
            raise self.refuse(f"logged_out: {error}", 'For example logged_out="form.login".') from error
        return str.__str__(given)

    def client(self, field: str, given: Any) -> Client:
        """Refused where its package is missing: no page is fetched by another client instead."""
        if not isinstance(given, str) or given not in list(Client):
            raise self.refuse(f"{field} is {shown(given)}", f"Give one of: {', '.join(Client)}.")
        client = Client(given)
        package, extra = EXTRA.get(client, ("", ""))
        if package:
            self.package(f'{field}="{client}"', package, extra)
        return client

    def package(self, what: str, package: str, extra: str) -> None:
        if find_spec(package) is None:
            said = f"{what} needs the package {package}, which is not installed here"
            raise self.refuse(said, f"Install it, in your clone of Trotline: pip install '.[{extra}]'")

    def archive(self, field: str, given: Any) -> ArchiveChoice:
        try:
            return ArchiveChoice.parse(given)
        except ValueError as error:
            raise self.refuse(f"{field}: {error}", 'Write archive="ok", or archive="10%".') from error

    def when_blocked(self, given: Any, client: Client) -> Client | None:
        if given is None:
            return None
        if given == Client.PLAIN or client is Client.BROWSER:
            reason = f'with client="{client}"' if client is Client.BROWSER else "as it is the default client"
            raise self.refuse(f"when_blocked={given!r} has no effect {reason}", 'Leave it out, or give "browser".')
        return self.client("when_blocked", given)

    def own_identity(self, client: Client, user_agent: str | None, headers: Iterable[str]) -> None:
        """A browser's headers fit together: another User-Agent would contradict them."""
        if client is not Client.BROWSER:
            return
        named = ["user_agent"] if user_agent is not None else []
        named += [name for name in headers if name.lower() == "user-agent" or name.lower().startswith("sec-")]
        if named:
            hint = 'Leave it out: the browser-like client sends its own headers. With client="plain" it is sent.'
            raise self.refuse(f'{", ".join(named)} has no effect with client="browser"', hint)

    def with_pool(self, field: str, pace: Pace, pool: str) -> Pace:
        if pace.per_proxy and pool in ("", NO_PROXY):
            raise self.refuse(f'{field} is "per proxy", and there is no proxy pool', _PER_PROXY_HINT)
        return pace

    def pace(self, field: str, given: Any, concurrency: Any, slowest: Any) -> Pace:
        if isinstance(given, Pace):
            return given
        rate, per_proxy = self._rate_of(field, given)
        if concurrency is None:
            # Per proxy, the number of proxies is the limit: a lane has one visit at a time through each.
            concurrency = MOST_AT_ONCE if per_proxy else _USUAL_AT_ONCE
        # A rate below the default of `slowest` lowers that, too.
        usual = min(_USUAL_SLOWEST, rate, key=lambda one: one.per_second)
        least = usual if slowest is None else self.rate("slowest", slowest)
        if least.per_second > rate.per_second:
            raise self.refuse(f"slowest {least} is faster than {field} {rate}", "Leave slowest out, or lower it.")
        return Pace(
            rate=rate,
            concurrency=self.number("concurrency", concurrency, least=1, most=MOST_AT_ONCE),
            slowest=least,
            per_proxy=per_proxy,
        )

    def _rate_of(self, field: str, given: Any) -> tuple[Rate, bool]:
        """The rate, and whether it is "per proxy"."""
        if not isinstance(given, str):
            return self.rate(field, given), False
        try:
            return Rate.parse_per_proxy(str.__str__(given))
        except ValueError:
            return self.rate(field, given), False

    def lanes(self, given: Any, concurrency: Any, slowest: Any, pool: str = "") -> dict[str, Pace]:
        if not isinstance(given, Mapping):
            raise self.refuse(f"lanes is {shown(given)}", 'Give a dict: lanes={"shop.example": "1/s"}.')
        found = {}
        for lane, own in given.items():
            name, field = self.text("a lane's name", lane), f"lanes[{shown(lane)}]"
            via = pool_of(name) or pool
            pace = self.with_pool(field, self.pace(field, own, concurrency, slowest), via)
            # Without a proxy such a pace is no limit at all.
            found[lane_of(name, via) if pace.per_proxy and not pool_of(name) else name] = pace
        return through(found, pool)

    def patience(self, field: str, given: Any) -> Seconds:
        if not isinstance(given, timedelta) or given <= timedelta(0):
            raise self.refuse(f"{field} is {shown(given)}", f"Give a length of time: {field}=timedelta(minutes=30).")
        return given.total_seconds()

    def deadline(self, given: Any) -> Seconds:
        """0: there is none."""
        if given is None:
            return 0.0
        try:
            found = given.total_seconds() if isinstance(given, timedelta) else seconds(self.text("deadline", given))
        except ValueError as error:
            raise self.refuse(f"deadline: {error}", _DEADLINE_HINT) from error
        if not 0 < found <= LONGEST_DEADLINE:
            raise self.refuse(f"deadline is {shown(given)}", _DEADLINE_HINT)
        return found

    def schedule(self, cron: Any, timezone: Any, overlap: Any) -> Schedule | None:
        if cron is None:
            if (timezone, overlap) != ("UTC", Overlap.SKIP):
                raise self.refuse("timezone or overlap without a schedule", 'Give one: schedule="0 3 * * *".')
            return None
        if overlap not in list(Overlap):
            raise self.refuse(f"overlap is {shown(overlap)}", 'Give "skip" or "wait".')
        schedule = Schedule(
            " ".join(self.text("schedule", cron).split()), self.text("timezone", timezone), Overlap(overlap)
        )
        try:
            schedules.check(schedule)
        except ValueError as error:
            hint = 'For example schedule="0 3 * * *", timezone="Europe/Berlin": every night at three.'
            raise self.refuse(f"schedule: {error}", hint) from error
        return schedule

    def validators(self, field: str, given: Any) -> tuple[Callable[[Any], Any], ...]:
        validators = (given,) if callable(given) else tuple(given) if isinstance(given, Iterable) else (given,)
        for validator in validators:
            if not callable(validator):
                raise self.refuse(
                    f"{field} has {shown(validator)}", f"Give a function of a page: {field}=looks_blocked."
                )
        return validators

    def key(self, given: Any) -> Any:
        if isinstance(given, list):
            given = tuple(given)
        fields = (given,) if isinstance(given, str) else given
        if given is None or callable(given):
            return given
        if not isinstance(fields, tuple) or not fields or not all(isinstance(one, str) and one for one in fields):
            raise self.refuse(
                f"key is {shown(given)}", 'Give a field ("sku"), several (("shop", "sku")), or a function.'
            )
        return given

    def model(self, given: Any) -> Any:
        if given is not None and not isinstance(given, type):
            raise self.refuse(
                f"model is {shown(given)}", "Give a class: a dataclass, msgspec.Struct, TypedDict or model."
            )
        return given

    def types(self, field: str, given: Any) -> tuple[str, ...]:
        try:
            named = content_types.read((given,) if isinstance(given, str) else given)
        except (ValueError, TypeError, AttributeError) as error:
            hint = f'For example {field}=["text/html", "application/pdf"], or {field}="*" for everything.'
            raise self.refuse(f"{field}: {error}", hint) from error
        if not named:
            raise self.refuse(f"{field} is empty", "Leave it out for pages, or list the types that you read.")
        return named

    def statuses(self, given: Any) -> frozenset[int]:
        statuses = (given,) if isinstance(given, int) else tuple(given)
        for status in statuses:
            if not isinstance(status, int) or not 100 <= status <= 599:
                raise self.refuse(f"status has {shown(status)}", "Give HTTP statuses: status=(404, 410).")
        return frozenset(statuses)
