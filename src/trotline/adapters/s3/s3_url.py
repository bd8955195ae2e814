"""`s3://BUCKET/PREFIX?endpoint=URL&region=NAME&credentials=env:NAME`."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from trotline.model.secret import is_reference
from trotline.rules import archive_urls

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9._/=+-]{0,500}")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


class Address(NamedTuple):
    bucket: str
    prefix: str
    endpoint: str
    """Empty: AWS."""
    region: str
    """Empty: that of the environment."""
    credentials: str
    """A reference to KEY:SECRET or KEY:SECRET:TOKEN; empty: as programs of AWS find them."""


def address_of(url: str) -> Address:
    """ValueError says what else would work; it never quotes the URL, which may have a secret in it."""
    read = archive_urls.read(url, ("endpoint", "region", "credentials"))
    bucket, _, prefix = read.place.partition("://")[2].partition("/")
    if "@" in bucket:
        raise ValueError("it has a user in it: credentials come from the environment, or from ?credentials=env:NAME")
    if not _BUCKET.fullmatch(bucket):
        raise ValueError(f'{bucket!r} is not the name of a bucket; write "s3://BUCKET/PREFIX"')
    prefix = prefix.strip("/")
    if not _PREFIX.fullmatch(prefix) or ".." in prefix:
        raise ValueError(f"{prefix!r} is not a prefix: letters, digits and . _ / = + -")
    endpoint = read.options.get("endpoint", "").rstrip("/")
    parts = urlsplit(endpoint)
    if endpoint and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username):
        raise ValueError("endpoint is not the URL of a server; write endpoint=https://HOST:PORT")
    region = read.options.get("region", "")
    if region and not _REGION.fullmatch(region):
        raise ValueError(f"region={region!r} is not the name of a region")
    credentials = read.options.get("credentials", "")
    if credentials and not is_reference(credentials):
        raise ValueError("credentials are given by reference: credentials=env:NAME or credentials=file:PATH")
    return Address(bucket, prefix, endpoint, region, credentials)
