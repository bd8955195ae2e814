"""A frontier made of a broker and of the frontier that keeps its books, both named by one URL."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from trotline.errors import SettingsError
from trotline.ports.backend import BooksOffer, BrokerOffer, FrontierOffer, Notice, OpenJob
from trotline.rules import redaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from trotline.frontier.known_broker_outage import KnownBrokerOutage
    from trotline.model.job import Job
    from trotline.model.server_load import ServerLoad
    from trotline.ports.jobs import Jobs
    from trotline.ports.leadership import Leadership
    from trotline.ports.proxy_pools import ProxyPools
    from trotline.ports.shared_cache import SharedCache


@functools.lru_cache(maxsize=64)
def _outage_of(url: str) -> KnownBrokerOutage:
    """One for all jobs of this process, or each would wait for a silent broker anew."""
    from trotline.frontier.known_broker_outage import KnownBrokerOutage

    return KnownBrokerOutage()


class _Composed:
    """What a brokered frontier offers: all but the tasks that wait is the books'."""

    def __init__(
        self,
        broker: BrokerOffer,
        find: Callable[[str], FrontierOffer],
        installed: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._broker = broker
        self._find = find
        self._installed = installed

    def parse(self, text: str) -> str:
        books = self._broker.books(text)
        try:
            offer = self._find(books)
        except SettingsError as error:
            raise ValueError(f"books=: {error.what}; write {self._broker.forms[0]}") from None
        if offer.books is None:
            raise ValueError(
                f"books=: {redaction.place(books)} cannot keep the books of a broker; write {self._broker.forms[0]}"
            )
        return self._broker.parse(text, offer.parse(books))

    def _offer(self, url: str) -> tuple[str, FrontierOffer, BooksOffer]:
        books = self._broker.books(url)
        offer = self._find(books)
        if offer.books is None:
            raise SettingsError(
                f"{redaction.place(books)} cannot keep the books of a broker", hint=f"Write {self._broker.forms[0]}."
            )
        return books, offer, offer.books

    async def jobs(self, url: str) -> Jobs:
        from trotline.frontier.brokered_frontier import BrokeredJobs

        books, _, offer = self._offer(url)
        with self._installed(books):
            jobs = await offer.jobs(books)
        return BrokeredJobs(jobs, lambda job: self._broker.open(url, job), lambda: self._broker.notices(url))

    async def job(self, url: str, job: Job, keeper: str) -> OpenJob:
        from trotline.frontier.brokered_frontier import brokered

        books, _, offer = self._offer(url)
        with self._installed(books):
            opened = await offer.job(books, job)
        try:
            return brokered(opened, self._broker.open(url, job), _outage_of(url))
        except BaseException:
            await opened.frontier.close()
            raise

    async def leadership(self, url: str) -> Leadership:
        from trotline.frontier.brokered_leadership import BrokeredLeadership

        books, _, offer = self._offer(url)
        with self._installed(books):
            leadership, jobs = await offer.leadership(books), await offer.jobs(books)
        return BrokeredLeadership(
            leadership, jobs, lambda job: self._broker.open(url, job), lambda: self._broker.notices(url)
        )

    async def proxy_pools(self, url: str) -> ProxyPools:
        books, offer, _ = self._offer(url)
        if offer.proxy_pools is None:
            raise SettingsError(
                f"{redaction.place(books)} cannot keep proxy pools", hint="Name other books, or remove the pool."
            )
        with self._installed(books):
            return await offer.proxy_pools(books)

    def shared_cache(self, url: str, kind: str) -> SharedCache | None:
        books, offer, _ = self._offer(url)
        return None if offer.shared_cache is None else offer.shared_cache(books, kind)

    async def notices(self, url: str) -> list[Notice]:
        books, offer, _ = self._offer(url)
        with self._installed(books):
            found = [] if offer.notices is None else await offer.notices(books)
        return [*found, *await self._broker.notices(url)]

    async def load(self, url: str) -> ServerLoad | None:
        books, offer, _ = self._offer(url)
        with self._installed(books):
            return None if offer.load is None else await offer.load(books)


def composed(
    broker: BrokerOffer,
    find: Callable[[str], FrontierOffer],
    installed: Callable[[str], AbstractContextManager[None]],
) -> FrontierOffer:
    """`find`: the frontier of a URL. `installed`: answers a missing library with the extra that brings it."""
    both = _Composed(broker, find, installed)
    return FrontierOffer(
        forms=broker.forms,
        parse=both.parse,
        jobs=both.jobs,
        job=both.job,
        leadership=both.leadership,
        proxy_pools=both.proxy_pools,
        shared_cache=both.shared_cache,
        notices=both.notices,
        load=both.load,
    )
