"""Amazon SQS, or a server that speaks its protocol, as the broker of a frontier, and as an inbox."""

from trotline.model.job import Job
from trotline.ports.backend import Backend, BrokerOffer, InboxOffer, Notice
from trotline.ports.broker import Broker
from trotline.ports.inbox import Inbox

FORM = "sqs://REGION/PREFIX?books=redis://HOST:PORT/0"
INBOX_FORM = "sqs://REGION?inbox=QUEUE"
RETENTION = 14 * 24 * 3600
"""Seconds that a message is kept: the longest that SQS offers."""


def _books(url: str) -> str:
    from trotline.adapters.sqs.broker_url import books_of

    return books_of(url)


def _parse(url: str, books: str) -> str:
    from trotline.adapters.sqs.broker_url import with_books

    return with_books(url, books)


def _open(url: str, job: Job) -> Broker:
    from trotline.adapters.sqs.broker import SqsBroker
    from trotline.adapters.sqs.broker_url import address_of

    return SqsBroker(address_of(url), job)


async def _notices(url: str) -> list[Notice]:
    from trotline.adapters.sqs.server_check import notices

    return await notices(url)


def _parse_inbox(text: str) -> str:
    from trotline.adapters.sqs.inbox_url import parse
    from trotline.rules.backend_urls import server_url

    parse(text)
    return server_url(text)


def _open_inbox(url: str) -> Inbox:
    from trotline.adapters.sqs.inbox import SqsInbox

    return SqsInbox(url)


BACKEND = Backend(
    name="sqs",
    schemes=("sqs",),
    local=False,
    extra="sqs",
    broker=BrokerOffer(
        forms=(FORM,), books=_books, parse=_parse, open=_open, notices=_notices, keeps_for=float(RETENTION)
    ),
    inbox=InboxOffer(forms=(INBOX_FORM,), parse=_parse_inbox, open=_open_inbox),
)
