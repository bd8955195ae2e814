"""Accounts of a site, and their sessions."""

from hashlib import blake2b

import msgspec

from trotline.model.proxy_pool import ACCOUNT
from trotline.model.secret import Secret
from trotline.model.time import Moment

LARGEST_SESSION = 16 * 1024
"""Bytes of a session as it is stored; the oldest cookies are dropped beyond that."""


class Account(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One account of an account pool. Known to workers only: the frontier has its member id."""

    pool: str
    """`@buyers`"""
    name: str
    """`anna`: for tasks of pool `@buyers/anna`, and for output."""
    user: str
    password: Secret
    secrets: dict[str, Secret] = {}
    """Further ones, by their key in the file: `totp`."""
    proxies: str
    """The proxy pool that it goes out through; `direct`: none."""

    @property
    def full_name(self) -> str:
        """`@buyers/anna`"""
        return f"{self.pool}{ACCOUNT}{self.name}"

    @property
    def fingerprint(self) -> str:
        """Changes with user and password: a session of another login must not be used. It is stored, so it has one byte
        of the password: too little to find out which of some passwords is the right one."""
        whose = blake2b("\0".join((self.pool, self.name, self.user)).encode("utf-8", "surrogatepass"), digest_size=3)
        password = blake2b(self.password.reveal().encode("utf-8", "surrogatepass"), digest_size=1, key=whose.digest())
        return whose.hexdigest() + password.hexdigest()

    def __repr__(self) -> str:
        return f"Account({self.full_name})"


class StoredCookie(msgspec.Struct, frozen=True, array_like=True):
    """A Set-Cookie header as it came."""

    url: str
    header: str
    at: Moment
    """When it came: Max-Age counts from then."""


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the holders of an account tell each other: stored in the frontier."""

    cookies: tuple[StoredCookie, ...] = ()
    logged_in: bool = False
    proved: bool = False
    """A page was read since the login: the login works."""
    logged_in_at: Moment = 0.0
    moves: int = 0
    """How often the account took another proxy."""
    proxy: int = 0
    """The member of its proxy pool that the account keeps; 0: the next one is chosen."""
    blocks: int = 0
    """Blocked visits in a row. After the first one the proxy is changed, then the account rests."""
    login: str = ""
    """`Account.fingerprint` of the login that it was made with: with another password it is not used."""
