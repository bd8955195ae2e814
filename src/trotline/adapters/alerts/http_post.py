"""One POST of JSON, with a limit of time and without redirects."""

import asyncio
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import aiohttp

from trotline.errors import AlertNotDelivered
from trotline.model.secret import Secret, without_secrets
from trotline.model.time import Seconds

TIMEOUT: Seconds = 10.0
_AGAIN = (429, 503)
"""Statuses whose Retry-After counts."""


def host_of(url: Secret) -> str:
    """For people: the rest of the URL may be a secret."""
    return urlsplit(url.reveal()).hostname or "?"


async def post(url: Secret, body: bytes, headers: Mapping[str, str], now: float) -> None:
    """AlertNotDelivered unless the answer is 2xx."""
    host = host_of(url)
    try:
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "Trotline", "Content-Type": "application/json"},
                auto_decompress=False,
            ) as session,
            session.post(url.current(), data=body, headers=headers, allow_redirects=False) as answer,
        ):
            _check(answer, host, now)
    except TimeoutError:
        raise AlertNotDelivered(f"{host} did not answer within {TIMEOUT:.0f} s", hint=_HINT) from None
    except (aiohttp.ClientError, OSError, ValueError, asyncio.IncompleteReadError) as error:
        # Not "from": the cause may quote the URL.
        why = without_secrets(str(error)) or type(error).__name__
        raise AlertNotDelivered(f"{host} cannot be reached: {why}", hint=_HINT) from None


_HINT = "Check the address in [alerts.receivers], then: trotline alerts --test"


def _check(answer: aiohttp.ClientResponse, host: str, now: float) -> None:
    if 200 <= answer.status < 300:
        return
    if 300 <= answer.status < 400:
        hint = "Write the address that it redirects to: alerts are sent to the address in the settings only."
        raise AlertNotDelivered(f"{host} answered with a redirect ({answer.status})", hint=hint)
    wait = retry_after(answer.headers.get("Retry-After", ""), now) if answer.status in _AGAIN else None
    raise AlertNotDelivered(f"{host} answered {answer.status}", hint=_HINT, retry_after=wait)


def retry_after(text: str, now: float) -> Seconds | None:
    """Seconds, or a date; None if it is neither."""
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None
