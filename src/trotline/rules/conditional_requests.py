"""Conditional requests (ETag, Last-Modified)."""

import re

import msgspec

from trotline.model.answer import Answer
from trotline.model.http_validator import Validator
from trotline.model.task import Task
from trotline.rules.session_pinning import name_of
from trotline.rules.urls import fingerprint

LONGEST = 1024
"""Characters of a validator; longer ones are ignored."""

# Quoted as the standard has it, or bare as some servers write it. Never `*`, which matches every version of a page.
_ETAG = re.compile(r'(?:W/)?"[\x20\x21\x23-\x7e]*"|[A-Za-z0-9._:+/=-]+')
# A date in any format, which only the server has to understand; it contains at least a digit.
_DATE = re.compile(r"(?=[^0-9]*[0-9])[\x20-\x7e]+")
_COPY_WE_HAVE = frozenset({"if-none-match", "if-modified-since"})
_AUTHORS_OWN = frozenset({"if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"})


def validator_of(answer: Answer) -> Validator | None:
    """The validators of this response; None if it has none."""
    if answer.status != 200:
        return None
    etag, modified = answer.header("etag") or "", answer.header("last-modified") or ""
    validator = Validator(
        etag if len(etag) <= LONGEST and _ETAG.fullmatch(etag) else "",
        modified if len(modified) <= LONGEST and _DATE.fullmatch(modified) else "",
    )
    return validator if validator.etag or validator.modified else None


def may_ask(task: Task) -> bool:
    """Only a plain GET whose author sets no condition of their own."""
    return task.method == "GET" and not any(name.lower() in _AUTHORS_OWN for name, _ in task.headers)


def asks(task: Task) -> bool:
    """Is the request conditional? Only then is a 304 valid."""
    return any(name.lower() in _COPY_WE_HAVE for name, _ in task.headers)


def asking(task: Task, validator: Validator) -> Task:
    """The task with the headers of a conditional request."""
    headers = list(task.headers)
    if validator.etag:
        headers.append(("If-None-Match", validator.etag))
    if validator.modified:
        headers.append(("If-Modified-Since", validator.modified))
    return msgspec.structs.replace(task, headers=tuple(headers))


def page_of(task: Task) -> int:
    """The key of a validator. It includes the URL: after a redirect, or with an explicit key, one task may have
    different URLs."""
    return fingerprint(task.route, f"{task.fingerprint} {name_of(task.session)} {task.url}")
