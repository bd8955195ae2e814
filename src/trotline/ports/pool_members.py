"""The ways out of a worker: the members of its proxy pools and account pools."""

from typing import Protocol

from trotline.model.account import Account
from trotline.model.proxy import Way


class Ways(Protocol):
    @property
    def pools(self) -> tuple[str, ...]:
        """The pools whose tasks this worker takes; "" are tasks without one."""
        ...

    def way(self, lane: str, member: int) -> Way | None:
        """None: this worker's file does not have the member (any more)."""
        ...

    def account(self, lane: str, member: int) -> Account | None:
        """The account with this member id; None: this worker's file does not have it (any more)."""
        ...

    def proxy_id(self, account: Account, moves: int, kept: int) -> int:
        """The member of its proxy pool that the account goes out through: `kept`, while the pool has it, else one that
        is chosen by a hash. 0: the pool has none at the moment, or the account goes out directly."""
        ...

    def proxy_of(self, account: Account, moves: int, proxy: int = 0) -> Way | None:
        """The way out through this member; 0: through the one that is chosen. None: there is none."""
        ...

    @property
    def proxied(self) -> bool:
        """Are there proxy pools? Then no page goes out directly by mistake."""
        ...

    def size(self, lane: str) -> int:
        """Members of the lane's pool."""
        ...
