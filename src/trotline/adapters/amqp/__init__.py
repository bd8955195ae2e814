"""RabbitMQ as the broker of a frontier, and as an inbox."""

from trotline.model.job import Job
from trotline.ports.backend import Backend, BrokerOffer, InboxOffer, Notice, UrlUser
from trotline.ports.broker import Broker
from trotline.ports.inbox import Inbox

FORM = "amqp://<USER>:<PASSWORD>@HOST/VHOST?books=redis://HOST:PORT/0"
INBOX_FORM = "amqp://<USER>:<PASSWORD>@HOST/VHOST?inbox=QUEUE"


def _books(url: str) -> str:
    from trotline.adapters.amqp.broker_url import books_of

    return books_of(url)


def _parse(url: str, books: str) -> str:
    from trotline.adapters.amqp.broker_url import with_books

    return with_books(url, books)


def _open(url: str, job: Job) -> Broker:
    from trotline.adapters.amqp.broker import AmqpBroker
    from trotline.adapters.amqp.broker_url import address_of

    return AmqpBroker(address_of(url), job)


async def _notices(url: str) -> list[Notice]:
    from trotline.adapters.amqp.server_check import notices

    return await notices(url)


def _parse_inbox(text: str) -> str:
    from trotline.adapters.amqp.inbox_url import parse
    from trotline.rules.backend_urls import server_url

    parse(text)
    return server_url(text)


def _open_inbox(url: str) -> Inbox:
    from trotline.adapters.amqp.inbox import AmqpInbox

    return AmqpInbox(url)


BACKEND = Backend(
    name="rabbitmq",
    schemes=("amqp", "amqps"),
    local=False,
    extra="rabbitmq",
    url_user=UrlUser.WITH_PASSWORD,
    broker=BrokerOffer(forms=(FORM,), books=_books, parse=_parse, open=_open, notices=_notices),
    inbox=InboxOffer(forms=(INBOX_FORM,), parse=_parse_inbox, open=_open_inbox),
)
