"""Where a spider's secrets may go."""

import msgspec

from trotline.rules.scope import admits
from trotline.rules.urls import Address, read


class Reach(msgspec.Struct, frozen=True):
    """The hosts that a spider calls its own; nobody else ever gets its secrets, whatever a page or a redirect says."""

    hosts: frozenset[str] = frozenset()
    """As in a scope: a host with its subdomains; with a port only that port. None: nowhere."""
    secure: bool = False
    """Only over https: all that is known of these hosts is https, and plain http would show the secret to the wire."""

    def admits(self, origin: str) -> bool:
        """`origin` as in "https://shop.example:8443"."""
        if self.secure and not origin.startswith("https://"):
            return False
        address = read(origin + "/")
        return isinstance(address, Address) and bool(self.hosts) and admits(self.hosts, address)
