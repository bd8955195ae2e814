"""URLs of brokers: they contain the URL of the frontier that keeps the books.

SCHEME://PLACE?books=URL      the URL of the books is percent-encoded; or as it is, if it comes last
"""

import re
from urllib.parse import quote, unquote

from trotline.rules import redaction

_BOOKS = re.compile(r"[?&]books=")


def books_of(url: str, broker: str, form: str) -> str:
    """The URL of the books; ValueError if there is none. `broker`, `form`: its name and how its URLs are written."""
    found = _BOOKS.search(url)
    if found is None:
        raise ValueError(
            f"{redaction.place(without_books(url))!r} names no books: {broker} keeps the tasks that wait, and another"
            f" frontier what is known of them; write {form}"
        )
    books = url[found.end() :]
    if "://" not in books:
        books = unquote(books.partition("&")[0])
    if "://" not in books:
        raise ValueError(f"books= is not the URL of a frontier; write {form}")
    return books


def without_books(url: str) -> str:
    found = _BOOKS.search(url)
    if found is None:
        return url
    rest = url[found.end() :]
    tail = "" if "://" in rest else rest.partition("&")[2]
    return url[: found.start()] + (f"{url[found.start()]}{tail}" if tail else "")


def with_books(plain: str, books: str) -> str:
    """The one form of the URL: the books come last, percent-encoded; so redaction knows which password is whose."""
    return f"{plain}{'&' if '?' in plain else '?'}books={quote(books, safe='')}"
