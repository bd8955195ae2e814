"""URLs of SQS as a frontier.

sqs://REGION[/PREFIX][?endpoint=URL][&key=REF&secret=REF[&token=REF]]&books=URL

Queues begin with PREFIX ("trotline" if there is none). `endpoint`: a server that speaks the same protocol. Credentials
are found as AWS's own programs find them (environment, ~/.aws, role of the machine), or are named by reference:
`key=env:NAME&secret=file:PATH`.
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from trotline.adapters.sqs import FORM as _FORM
from trotline.errors import SettingsError
from trotline.model.secret import Secret, is_reference
from trotline.rules import broker_urls
from trotline.rules.backend_urls import server_url

FORM = f'"{_FORM}"'
PREFIX = "trotline"
_REGION = re.compile(r"[a-z0-9-]{2,40}")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,20}")
_CREDENTIALS = ("key", "secret", "token")


class Address(NamedTuple):
    region: str
    prefix: str = PREFIX
    endpoint: str = ""
    """Empty: that of AWS in the region."""
    key: str = ""
    """A reference, as the two others; empty: AWS's own chain finds them."""
    secret: str = ""
    token: str = ""

    @property
    def place(self) -> str:
        """For messages: without secrets."""
        at = f" at {self.endpoint.partition('://')[2]}" if self.endpoint else ""
        return f"SQS {self.region}{at}"

    @property
    def credentials(self) -> dict[str, Secret]:
        """What the client library takes; empty: it finds them itself. SettingsError if a reference leads nowhere."""
        names = {"aws_access_key_id": self.key, "aws_secret_access_key": self.secret, "aws_session_token": self.token}
        try:
            return {name: Secret.parse(value) for name, value in names.items() if value}
        except (ValueError, OSError) as error:
            raise SettingsError(
                f"the credentials of {self.place} cannot be read: {error}", hint="See key= and secret= in its URL."
            ) from error


def books_of(url: str) -> str:
    """The URL of the books; ValueError if there is none."""
    return broker_urls.books_of(url, "SQS", FORM)


def with_books(url: str, books: str) -> str:
    """The URL in its one form; ValueError says what is wrong."""
    plain = server_url(broker_urls.without_books(url))
    try:
        address_of(plain)
    except SettingsError as error:
        raise ValueError(f"{error.what}; {error.hint}") from None
    return broker_urls.with_books(plain, books)


def address_of(url: str) -> Address:
    """Raises SettingsError; a secret that was written into the URL is not in its text."""
    return read(broker_urls.without_books(url), FORM)


def read(url: str, form: str) -> Address:
    """`form`: how the URL is written, for messages."""
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        if parts.username or parts.password:
            raise ValueError("credentials do not belong before the @; name them by reference (docs/how-to/sqs.md)")
        if not _REGION.fullmatch(parts.netloc):
            raise ValueError("the region is missing or wrong; it is named like eu-central-1, without a port")
        prefix = parts.path.strip("/") or PREFIX
        if not _PREFIX.fullmatch(prefix):
            raise ValueError("the prefix of queues has at most 20 letters, digits, - and _")
        return Address(
            parts.netloc, prefix, _endpoint(query.pop("endpoint", "")), **_references(query), **_nothing_else(query)
        )
    except ValueError as error:
        raise SettingsError(f"the URL of SQS cannot be read: {error}", hint=f"Write it as {form}.") from None


def _endpoint(text: str) -> str:
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise ValueError("endpoint= is not the address of a server: http://HOST:PORT")
    return text.rstrip("/")


def _references(query: dict[str, str]) -> dict[str, str]:
    found = {name: query.pop(name) for name in _CREDENTIALS if name in query}
    for name, value in found.items():
        if not is_reference(value):
            raise ValueError(f"{name}= is a reference, env:NAME or file:PATH: a URL is no place for a secret")
    if found and not {"key", "secret"} <= found.keys():
        raise ValueError("key= and secret= belong together")
    return found


def _nothing_else(query: dict[str, str]) -> dict[str, str]:
    if query:
        raise ValueError(f"unknown option {min(query)[:40]}; known are endpoint=, key=, secret=, token= and books=")
    return {}
