"""The request of a lease, and its way out: through the proxy and with the account that the lease has."""

import logging
import time
from collections.abc import Callable

from scrapy import Request, Spider

from trotline.bridges.scrapy.cookie_jars import CookieJars
from trotline.bridges.scrapy.lease_feeder import Ready
from trotline.bridges.scrapy.log_in import METHOD
from trotline.bridges.scrapy.methods import UnknownMethod
from trotline.bridges.scrapy.pools import Pools
from trotline.bridges.scrapy.request_codec import ACCOUNT, RequestCodec
from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import WayOut
from trotline.frontier.put_one_by_one import defect
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Retry, Snooze
from trotline.model.record_row import whole
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.rules import redaction
from trotline.rules.task_checks import said

log = logging.getLogger("trotline.scrapy")

OTHER_VERSION_AGAIN: Seconds = 30.0
"""A request whose callback this version of the spider does not have is tried again after this,"""
OTHER_VERSION_TRIES = 10
"""and so often in all; retries of Scrapy before count, too."""
_KEEP = "keep the old callback's name until the job has ended"
_LONGEST_REASON = 200


class LeaseRequests:
    def __init__(
        self,
        spider: Spider,
        codec: RequestCodec,
        jars: CookieJars,
        pools: Pools | None,
        settle: Callable[[Settlement], None],
    ) -> None:
        self._spider = spider
        self._codec = codec
        self._jars = jars
        self._pools = pools
        self._settle = settle
        self._named: set[str] = set()
        """Missing methods, each logged once."""

    def visit(self, ready: Ready) -> Visit | None:
        """None: what is in the queue is no request of this spider. It must not stop the others."""
        lease, way = ready.lease, self._way_out(ready)
        if isinstance(way, Snooze | Bury):
            self._settle(Settlement(lease, way))
            return None
        try:
            request, jar = self._codec.decode(lease.task)
            if jar is not None:
                self._jars.restore(request, jar)
        except UnknownMethod as error:
            self._settle(Settlement(lease, self._of_other_version(lease.task, str(error))))
            return None
        except Exception as error:
            # An error that left here would end the loop of Scrapy's engine, and the crawl would hang.
            why = said(error) if isinstance(error, ValueError | TypeError) else defect(error)
            why = redaction.text(whole(why), about=lease.task)[:_LONGEST_REASON]
            log.error("scrapy.not_read %s is buried: %s", redaction.url(lease.task.url), why)
            self._settle(Settlement(lease, Bury(f"not read: {why}")))
            return None
        self._open_session(request, way)
        return Visit(lease, request, way)

    def _of_other_version(self, task: Task, why: str) -> Retry | Bury:
        """A deploy: a process with the version that has the method may run beside this one, or come soon."""
        why = redaction.text(why, about=task)[:_LONGEST_REASON]
        if task.attempt >= OTHER_VERSION_TRIES - 1:
            log.error("scrapy.not_read %s is buried: %s; %s", redaction.url(task.url), why, _KEEP)
            return Bury(f"not read: {why}; {_KEEP}")
        if why not in self._named:
            self._named.add(why)
            log.warning(
                "scrapy.other_version %s is given back: %s. It is tried every %d s, %d times in all; %s",
                redaction.url(task.url), why, OTHER_VERSION_AGAIN, OTHER_VERSION_TRIES, _KEEP,
            )  # fmt: skip
        return Retry(OTHER_VERSION_AGAIN, f"not read: {why}")

    def _open_session(self, request: Request, way: WayOut | None) -> None:
        if way is not None and way.account is not None:
            self._jars.open_session(way.account.jar, way.account.session.cookies, time.time())
            request.meta.update({"cookiejar": way.account.jar, ACCOUNT: way.account.account.name})

    def _way_out(self, ready: Ready) -> WayOut | Snooze | Bury | None:
        """None: directly. Snooze: not by this process, or not yet."""
        if self._pools is None:
            return None
        if ready.session is None:
            way = self._pools.way(ready.lease)
            return way if way is None or isinstance(way, Snooze) else WayOut(way)
        found = self._pools.account(ready.lease, ready.session, ready.asked_at)
        if isinstance(found, Snooze):
            return found
        proxy, held = found
        if held.account.user and not hasattr(self._spider, METHOD):
            return Bury(f"no login for {held.account.pool}: the spider has no method {METHOD}")
        return WayOut(proxy, held)
