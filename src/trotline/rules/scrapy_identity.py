"""Which requests of a Scrapy project are the same task: Scrapy's fingerprints as our numbers."""

import hashlib
import json

import xxhash

START = 0
"""In place of a parent's fingerprint: the request came from `start()`."""


def filtered(fingerprint: bytes) -> int:
    """Of a request that Scrapy's duplicate filter sees: the first 8 bytes of its fingerprint."""
    return int.from_bytes(fingerprint[:8], "big", signed=True) or 1


def unfiltered(parent: int, occurrence: int, method: str, url: str, body: bytes) -> int:
    """Of a request with `dont_filter`: it is new each time that another page yields it, and the same one if the same
    page is visited again after a crash. `occurrence`: how many equal ones the page has yielded before."""
    text = f"{parent}\0{occurrence}\0{method}\0{url}\0".encode("utf-8", "surrogatepass")
    number = xxhash.xxh3_64_intdigest(text + body)
    return (number - (1 << 64) if number >> 63 else number) or 1


def of_url(url: str) -> dict[int, str]:
    """The numbers that a plain GET of this URL may have, with what each stands for. Empty: w3lib is not installed."""
    try:
        from w3lib.url import canonicalize_url, safe_url_string
    except ModuleNotFoundError:
        return {}
    sent = safe_url_string(url)
    data = {"method": "GET", "url": canonicalize_url(sent), "body": "", "headers": {}}
    number = filtered(hashlib.sha1(json.dumps(data, sort_keys=True).encode(), usedforsecurity=False).digest())
    return {number: "", unfiltered(START, 0, "GET", sent, b""): "start"}
