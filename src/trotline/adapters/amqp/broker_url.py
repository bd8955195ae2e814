"""URLs of RabbitMQ as a frontier.

amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST]?books=URL         amqps:// the same with TLS; ca=FILE: certificates to trust

`books` is the URL of the frontier that keeps the books, percent-encoded; or as it is, if it comes last.
"""

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from trotline.adapters.amqp import FORM as _FORM
from trotline.errors import SettingsError
from trotline.rules import broker_urls
from trotline.rules.backend_urls import server_url

FORM = f'"{_FORM}"'
PORT, TLS_PORT = 5672, 5671


class Address(NamedTuple):
    host: str
    port: int
    user: str
    password: str
    vhost: str
    tls: bool
    ca: str
    """A file with certificates; empty: those of the system."""

    @property
    def place(self) -> str:
        """For messages: without secrets."""
        vhost = "" if self.vhost == "/" else f"/{quote(self.vhost, safe='')}"
        return f"rabbitmq {self.host}:{self.port}{vhost}"

    @property
    def url(self) -> str:
        """For the client library."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"amqp{'s' * self.tls}://{login}@{host}:{self.port}/{quote(self.vhost, safe='')}"

    def __repr__(self) -> str:
        return f"Address({self.place})"


def books_of(url: str) -> str:
    """The URL of the books; ValueError if there is none."""
    return broker_urls.books_of(url, "RabbitMQ", FORM)


def with_books(url: str, books: str) -> str:
    """The URL in its one form; ValueError says what is wrong."""
    plain = server_url(broker_urls.without_books(url))
    try:
        address_of(plain)
    except SettingsError as error:
        raise ValueError(f"{error.what}; {error.hint}") from None
    return broker_urls.with_books(plain, books)


def address_of(url: str) -> Address:
    """Raises SettingsError, without the password in its text."""
    try:
        parts = urlsplit(broker_urls.without_books(url))
        query = dict(parse_qsl(parts.query))
        tls = parts.scheme == "amqps"
        ca = query.pop("ca", "") if tls else ""
        if query:
            raise ValueError(f"unknown option {sorted(query)[0][:40]}; known are books=, and with amqps:// ca=FILE")
        if not parts.hostname:
            raise ValueError("no host")
        return Address(
            host=parts.hostname,
            port=parts.port or (TLS_PORT if tls else PORT),
            user=unquote(parts.username or "guest"),
            password=unquote(parts.password or "guest"),
            vhost=unquote(parts.path[1:]) or "/",
            tls=tls,
            ca=ca,
        )
    except ValueError as error:
        text = str(error)
        if parts_port_error(text):
            text = "the port must be an integer"
        raise SettingsError(f"the URL of RabbitMQ cannot be read: {text}", hint=f"Write it as {FORM}.") from None


def parts_port_error(text: str) -> bool:
    """The library's message repeats the text behind the colon, which may be a password."""
    return "Port" in text or "port" in text
