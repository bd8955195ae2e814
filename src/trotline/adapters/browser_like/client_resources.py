"""What a spider's browser-like clients share: trusted certificates, relay folder, header sets, and one thread."""

import re
import ssl
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import wreq
from wreq.tls import CertStore

from trotline.adapters.browser_like.profiles import Profile
from trotline.adapters.browser_like.relay import Relay
from trotline.adapters.browser_like.relay_folder import RelayFolder

_SECURE_ONLY = re.compile(r"sec-|priority$|te$|host$|cookie$")
"""Not sent over plain http by browsers, or made for each request."""
_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")
_NOWHERE = "http://headers.invalid/"


class HeaderSet(NamedTuple):
    """The headers of a browser."""

    order: tuple[str, ...]
    """Names in the order and the case of HTTP/1.1; HTTP/2 has the same order."""
    over_http: Mapping[str, str]
    """What it sends over plain http."""


class ClientResources:
    """One per fetcher of a spider."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        """`tls`: with the trusted certificates; None: the system's, as for the default client."""
        self.trusted = CertStore.from_der_certs(_certificates(tls))
        self.folder = RelayFolder()
        self._header_sets: dict[str, HeaderSet] = {}

    async def header_set(self, profile: Profile, client: wreq.Client, relay: Relay) -> HeaderSet:
        """Read from a request of the client itself, which the relay answers."""
        found = self._header_sets.get(profile.name)
        if found is None:
            heads: list[bytes] = []
            relay.on_plain_request = heads.append
            await client.get(_NOWHERE)
            found = self._header_sets[profile.name] = _header_set(heads[0])
        return found


@cache
def runtime() -> wreq.Runtime:
    """The client's thread, one for the process: a worker is meant for one core."""
    return wreq.Runtime(workers=1, thread_name="trotline-browser")


def _header_set(head: bytes) -> HeaderSet:
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines) if name]
    order = ("Host", *(_written(name) for name, _ in pairs if name != "host"))
    kept = {_written(name): value for name, value in pairs if not _SECURE_ONLY.match(name)}
    # Over plain http browsers accept no other codings: proxies on the way have spoiled them.
    return HeaderSet(order, {**kept, "Accept-Encoding": "gzip, deflate"})


def _written(name: str) -> str:
    """A header's name as browsers write it in HTTP/1.1."""
    return name if name.startswith("sec-ch-") else "TE" if name == "te" else name.title()


def _certificates(tls: ssl.SSLContext | None) -> list[bytes]:
    """The trusted certificates as DER. Those in a folder are loaded by OpenSSL when they are needed: here all are."""
    context = tls or ssl.create_default_context()
    found = context.get_ca_certs(binary_form=True)
    folder = ssl.get_default_verify_paths().capath
    if not found and tls is None and folder is not None:
        for file in Path(folder).iterdir():
            if _HASHED.fullmatch(file.name):
                context.load_verify_locations(cafile=file)
        found = context.get_ca_certs(binary_form=True)
    return found
