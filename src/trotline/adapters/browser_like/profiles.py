"""Which browser an identity looks like: one profile per way out, the same in every worker."""

from hashlib import blake2b
from typing import NamedTuple

from wreq.emulation import Emulation, Platform
from wreq.emulation import Profile as Client

from trotline.model.proxy import Proxy, Way


class Profile(NamedTuple):
    """A browser on a desktop system."""

    name: str
    client: Client
    platform: Platform

    def emulation(self) -> Emulation:
        return Emulation(profile=self.client, platform=self.platform)


PROFILES = (
    Profile("chrome 154 windows", Client.Chrome154, Platform.Windows),
    Profile("chrome 154 macos", Client.Chrome154, Platform.MacOS),
    Profile("chrome 153 windows", Client.Chrome153, Platform.Windows),
    Profile("edge 148 windows", Client.Edge148, Platform.Windows),
    Profile("firefox 152 windows", Client.Firefox152, Platform.Windows),
    Profile("safari 26.4 macos", Client.Safari26_4, Platform.MacOS),
)
"""Recent browsers on desktops. The list belongs to the release: a change gives identities other browsers."""


def profile_of(way: Way | None, spider: str) -> Profile:
    """The profile of this way out: by a stable hash, so that the fleet agrees without talking. Sessions of a gateway
    differ in their login, so they are identities of their own. Without a proxy the spider is the identity."""
    parts = ("direct", spider) if not isinstance(way, Proxy) else (way.scheme, way.host, str(way.port), way.user)
    number = int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big")
    return PROFILES[number % len(PROFILES)]
