"""Requests of Scrapy as tasks of a frontier, and back. No pickle: callbacks by name, values as tagged JSON.

Headers, cookies, body, meta and arguments are one JSON text in `Task.body`, which no operator's view shows.
"""

from collections.abc import Callable, Container
from typing import Any

from scrapy import Request, Spider
from scrapy.utils.httpobj import urlparse_cached

from trotline.bridges.scrapy.methods import Methods
from trotline.bridges.scrapy.process_values import ProcessValues
from trotline.bridges.scrapy.project_values import VALUES, loaded
from trotline.model.proxy_pool import VIA, lane_of
from trotline.model.task import NORMAL, Task
from trotline.rules.tagged_json import BadData, NotData
from trotline.rules.task_checks import (
    LARGEST_BODY,
    LEAST_PRIORITY,
    LONGEST_NAME,
    METHOD,
    MOST_DEPTH,
    MOST_PRIORITY,
    MOST_RETRIES,
    InvalidValue,
    cut_to_name,
    shown,
)
from trotline.rules.task_checks import (
    name as checked_name,
)

SLOT = "trotline"
"""The downloader slot of leased requests, which has no delay: the frontier paces them."""
ACCOUNT = "trotline_account"
"""In the meta of a request that is visited with an account: its name."""
LOGIN = "trotline_login"
"""In the meta of a request that is part of a login: the token of its lease."""
DEFAULT_CALLBACK = "parse"
_PORTS = {"http": 80, "https": 443}
_PLAIN = frozenset(Request.attributes)
_OF_THE_PROCESS = ("playwright_page",)
"""Meta keys whose value is an object of this process, and that middlewares copy to retries and redirects."""


class RequestCodec:
    def __init__(
        self, spider: Spider, named_slots: frozenset[str] = frozenset(), private_jars: Container[str] = ()
    ) -> None:
        """`named_slots`: those of DOWNLOAD_SLOTS, which have a pace of their own. `private_jars`: cookie jars of
        accounts, which belong to the holder of the account."""
        self._private_jars = private_jars
        self._methods = Methods(spider)
        self._named_slots = named_slots
        self._process_values = ProcessValues()

    def encode(
        self,
        request: Request,
        fingerprint: int,
        *,
        now: float,
        parent: str = "",
        jar: Any = None,
        before: Task | None = None,
        pool: str = "",
    ) -> Task:
        """NotData says what cannot be stored. `jar`: the cookies that its process has for it; `before`: the task whose
        retry or redirect it is; `pool`: what it goes out through."""
        payload = self._payload(request, again=before is not None)
        if jar:
            payload["jar"] = jar
        body = VALUES.encode(payload) if before is None else self._encode_again(payload, before)
        if (size := len(body) + len(request.url)) > LARGEST_BODY:
            raise NotData(f"its URL, body, meta and arguments have {size:,} bytes; {LARGEST_BODY:,} are allowed")
        depth = request.meta.get("depth", 0)
        lane = _via(self.lane(request, parent), pool)
        _check(request.method, lane)
        return Task(
            url=request.url,
            route=self._route(request),
            lane=lane,
            fingerprint=fingerprint,
            priority=_priority(request),
            depth=depth if type(depth) is int and 0 <= depth <= MOST_DEPTH else 0,
            retries=MOST_RETRIES,
            created_at=now,
            parent=parent,
            method=request.method,
            body=body,
            pool=pool,
        )

    def _encode_again(self, payload: dict[str, Any], before: Task) -> bytes:
        try:
            return VALUES.encode(payload)
        except NotData:
            if "meta" not in payload:
                raise
        stored = VALUES.decode(before.body).get("meta", {}) if before.body else {}
        payload["meta"] = self._process_values.without(payload["meta"], stored)
        return VALUES.encode(payload)

    def decode(self, task: Task) -> tuple[Request, Any]:
        """The request, and the cookies of its process. BadData if this is no request that we wrote."""
        payload = VALUES.decode(task.body) if task.body else {}
        if not isinstance(payload, dict):
            raise BadData("the task has no request")
        kind = _request_class(payload.pop("class", None))
        jar = payload.pop("jar", None)
        try:
            for name in ("callback", "errback"):
                if payload.get(name) is not None:
                    payload[name] = self._methods.find(payload[name])
            if "headers" in payload:
                payload["headers"] = [
                    (name.encode("latin-1"), [one.encode("latin-1") for one in values])
                    for name, values in payload["headers"].items()
                ]
            request = kind(task.url, method=task.method, **payload)
            # An account comes with its lease, whatever the queue says.
            for name in self._left_out(request.meta):
                del request.meta[name]
        except BadData:
            raise
        except Exception as error:
            # The constructor of a class of the project may raise anything, and a jar may be a list.
            raise BadData(f"no request can be made of it: {type(error).__name__}: {error}") from error
        return request, jar

    def lane(self, request: Request, parent: str = "") -> str:
        """The host with its port, as in our own jobs; or the slot that the project names."""
        url = urlparse_cached(request)
        host = url.hostname or f"{url.scheme}:"
        slot = request.meta.get("download_slot")
        if slot is not None and slot not in (SLOT, host) and not _is_host_of(slot, parent):
            return cut_to_name(str(slot))
        if host in self._named_slots or url.port is None or _PORTS.get(url.scheme) == url.port:
            return cut_to_name(host)
        return cut_to_name(f"{host}:{url.port}")

    def _route(self, request: Request) -> str:
        callback = request.callback
        return DEFAULT_CALLBACK if callback is None else cut_to_name(self._methods.name(callback, "callback"))

    def _payload(self, request: Request, *, again: bool) -> dict[str, Any]:
        """All but the URL and the method; defaults are left out."""
        found: dict[str, Any] = {}
        private = request.meta.get("cookiejar") in self._private_jars
        if request.callback is not None:
            found["callback"] = self._methods.name(request.callback, "callback")
        if request.errback is not None:
            found["errback"] = self._methods.name(request.errback, "errback")
        if request.headers:
            found["headers"] = {
                name.decode("latin-1"): [one.decode("latin-1") for one in values]
                for name, values in request.headers.items()
                if not (private and name == b"Cookie")
            }
        if request.meta:
            found["meta"] = self._travelling(request.meta, again=again)
        for name in _OTHERS:
            value = getattr(request, name)
            if value:
                found[name] = value
        if request.encoding != "utf-8":
            found["encoding"] = request.encoding
        if type(request) is not Request:
            found |= _of_subclass(request)
        return found

    def _travelling(self, meta: dict[str, Any], *, again: bool) -> dict[str, Any]:
        left = self._left_out(meta)
        if meta.get("download_slot") == SLOT:
            left.add("download_slot")
        if again:
            left.update(_OF_THE_PROCESS)
        return {name: value for name, value in meta.items() if name not in left} if left else meta

    def _left_out(self, meta: dict[str, Any]) -> set[str]:
        left = {ACCOUNT, LOGIN} & meta.keys()
        if meta.get("cookiejar") in self._private_jars:
            left.add("cookiejar")
        return left


_OTHERS = ("body", "cookies", "cb_kwargs", "flags", "priority", "dont_filter")


def _of_subclass(request: Request) -> dict[str, Any]:
    kind = type(request)
    more = {name: getattr(request, name) for name in kind.attributes if name not in _PLAIN}
    return {**more, "class": f"{kind.__module__}.{kind.__qualname__}"}


def _request_class(path: Any) -> Callable[..., Request]:
    if path is None:
        return Request
    try:
        found = loaded(path)
    except LookupError as error:
        raise BadData(str(error)) from error
    if not issubclass(found, Request):
        raise BadData(f"{path} is not a class of requests")
    return found  # type: ignore[no-any-return]


def _check(method: str, lane: str) -> None:
    """What a frontier could not store, or no server would understand."""
    if not METHOD.fullmatch(method):
        raise NotData(f"its method {shown(method)} is not one of HTTP")
    try:
        checked_name(lane)
    except InvalidValue as error:
        raise NotData(f"its host or download slot is {shown(lane)}; give {error}") from error


def _via(lane: str, pool: str) -> str:
    return lane_of(cut_to_name(lane, LONGEST_NAME - len(VIA) - len(pool)), pool) if pool else lane


def _priority(request: Request) -> int:
    """Ours: smaller goes sooner. Start requests go after others of the same priority, as in Scrapy."""
    wanted = NORMAL - 2 * request.priority + bool(request.meta.get("is_start_request"))
    return min(max(wanted, LEAST_PRIORITY), MOST_PRIORITY)


def _is_host_of(slot: Any, parent: str) -> bool:
    """The downloader writes the host into the meta of a request, and spiders copy that to the next one."""
    return bool(parent) and parent.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0] == slot
