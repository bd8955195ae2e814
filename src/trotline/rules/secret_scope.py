"""The hosts to which a spider's secrets (headers, cookies) may be sent."""

import msgspec

from trotline.rules.scope import admits
from trotline.rules.urls import Address, read


class SecretScope(msgspec.Struct, frozen=True):
    """Secrets are sent to these hosts only, whatever a page or a redirect says."""

    hosts: frozenset[str] = frozenset()
    """As in a scope: a host with its subdomains; with a port only that port. Empty: none."""
    secure: bool = False
    """Only over https."""

    def admits(self, origin: str) -> bool:
        """`origin` as in "https://shop.example:8443"."""
        if self.secure and not origin.startswith("https://"):
            return False
        address = read(origin + "/")
        return isinstance(address, Address) and bool(self.hosts) and admits(self.hosts, address)
