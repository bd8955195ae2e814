"""Requests in a queue of scrapy-redis, as tasks of the Scrapy bridge."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trotline.model.task import NORMAL, Task
from trotline.rules import safe_pickle, task_checks
from trotline.rules.scrapy_identity import START, filtered, unfiltered
from trotline.rules.scrapy_meta import PROXY, way_out
from trotline.rules.tagged_json import NotData, TaggedJson
from trotline.rules.task_checks import (
    LARGEST_BODY,
    LEAST_PRIORITY,
    MOST_PRIORITY,
    MOST_RETRIES,
    cut_to_name,
    shown,
    type_of,
)

NOTE = "scrapy identity"
"""The note of a job whose fingerprints are those of scrapy-redis; its text is the key of the imported filter."""
_VALUES = TaggedJson()
_FIELDS = ("meta", "body", "cookies", "cb_kwargs", "flags", "priority", "dont_filter", "callback", "errback")
_LONGEST_SHOWN = 20
_PORTS = {"http": 80, "https": 443}


def fingerprint(method: str, url: str, body: bytes) -> bytes:
    """As the duplicate filter of scrapy-redis makes it."""
    from w3lib.url import canonicalize_url

    data = {"method": method, "url": canonicalize_url(url), "body": body.hex()}
    return hashlib.sha1(json.dumps(data, sort_keys=True).encode(), usedforsecurity=False).digest()


def number_of(url: str) -> int:
    """Of a plain GET, as in jobs that were imported."""
    from w3lib.url import safe_url_string

    return filtered(fingerprint("GET", safe_url_string(url), b""))


def read(entry: bytes) -> dict[str, Any]:
    """The request in an entry, pickled or as JSON. ValueError says why there is none."""
    found = _json(entry) if entry.lstrip()[:1] == b"{" else safe_pickle.read(entry)
    if not isinstance(found, dict) or not isinstance(found.get("url"), str):
        raise ValueError("it is no request")
    return found


def _json(entry: bytes) -> Any:
    if len(entry) > safe_pickle.LARGEST:
        raise ValueError(f"it has {len(entry):,} bytes; {safe_pickle.LARGEST:,} are read")
    try:
        return json.loads(entry)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def task(fields: Mapping[str, Any], number: int, now: float, *, keeps_proxy: bool = False) -> Task:
    """`number`: of requests that are not filtered, the place in the queue. `keeps_proxy`: its proxy may be what the
    queue says. ValueError or NotData says what is wrong."""
    url, method = _of_the_web(str(fields["url"])), str(fields.get("method") or "GET")
    _check_way_out(fields.get("meta"), keeps_proxy)
    body = fields.get("body") or b""
    if isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes):
        raise ValueError(f"its body is {type_of(body)}; text or bytes are read")
    payload = {name: fields[name] for name in _FIELDS if fields.get(name)} | ({"body": body} if body else {})
    if fields.get("headers"):
        payload["headers"] = _headers(fields["headers"])
    if fields.get("encoding", "utf-8") != "utf-8":
        payload["encoding"] = fields["encoding"]
    if fields.get("_class"):
        payload["class"] = fields["_class"]
    text = _VALUES.encode(payload)
    if (size := len(text) + len(url)) > LARGEST_BODY:
        raise NotData(f"it has {size:,} bytes; {LARGEST_BODY:,} are allowed")
    unfiltered_as = unfiltered(START, number, method, url, body)
    made = Task(
        url=url,
        route=cut_to_name(str(fields.get("callback") or "parse")),
        lane=_lane(url),
        fingerprint=unfiltered_as if fields.get("dont_filter") else filtered(fingerprint(method, url, body)),
        priority=_priority(fields.get("priority") or 0),
        retries=MOST_RETRIES,
        created_at=now,
        method=method,
        body=text,
    )
    return task_checks.task(made)


def _of_the_web(url: str) -> str:
    """Who writes to the queue reads no files of this machine."""
    if not url.lower().startswith(("http://", "https://")):
        scheme = url.partition(":")[0] if ":" in url else ""
        raise ValueError(f"its URL begins with {shown(scheme[:_LONGEST_SHOWN])}; http and https are read")
    return url


def _check_way_out(meta: Any, keeps_proxy: bool) -> None:
    """As of an entry of an inbox: where its page is asked for would be chosen by the queue's writer."""
    if not isinstance(meta, dict):
        return
    key = way_out(name for name in meta if not (keeps_proxy and name == PROXY))
    if key == PROXY:
        raise ValueError("meta['proxy'] names a proxy; --keep-proxies moves such requests as they are")
    if key:
        raise ValueError(f"meta[{key!r}] is set by the spider only, and not by what is in a queue")


def _priority(given: Any) -> int:
    if not isinstance(given, int | float | str) or (isinstance(given, float) and not math.isfinite(given)):
        raise ValueError(f"its priority is {shown(given)}; an integer is read")
    return min(max(NORMAL - 2 * int(given), LEAST_PRIORITY), MOST_PRIORITY)


def _headers(given: Any) -> dict[str, list[str]]:
    if not isinstance(given, dict):
        raise ValueError(f"its headers are {type_of(given)}; a dict is read")
    found: dict[str, list[str]] = {}
    for name, values in given.items():
        listed = values if isinstance(values, list | tuple) else [values]
        found[_latin(name)] = [_latin(value) for value in listed]
    return found


def _latin(text: Any) -> str:
    return text.decode("latin-1") if isinstance(text, bytes) else str(text).encode().decode("latin-1")


def _lane(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or f"{parts.scheme}:"
    port = parts.port
    return cut_to_name(host if port is None or _PORTS.get(parts.scheme) == port else f"{host}:{port}")
