"""Amazon SQS, or a server that speaks its protocol, as the broker of a frontier."""

from trotline.model.job import Job
from trotline.ports.backend import Backend, BrokerOffer, Notice
from trotline.ports.broker import Broker

FORM = "sqs://REGION/PREFIX?books=redis://HOST:PORT/0"
RETENTION = 14 * 24 * 3600
"""Seconds that a message is kept: the longest that SQS offers."""


def _books(url: str) -> str:
    from trotline.adapters.sqs.address import books_of

    return books_of(url)


def _parse(url: str, books: str) -> str:
    from trotline.adapters.sqs.address import with_books

    return with_books(url, books)


def _open(url: str, job: Job) -> Broker:
    from trotline.adapters.sqs.address import address_of
    from trotline.adapters.sqs.broker import SqsBroker

    return SqsBroker(address_of(url), job)


async def _notices(url: str) -> list[Notice]:
    from trotline.adapters.sqs.check import notices

    return await notices(url)


BACKEND = Backend(
    name="sqs",
    schemes=("sqs",),
    local=False,
    extra="sqs",
    broker=BrokerOffer(
        forms=(FORM,), books=_books, parse=_parse, open=_open, notices=_notices, keeps_for=float(RETENTION)
    ),
)
