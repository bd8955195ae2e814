"""The ways out of a worker: the members of its proxy pools."""

from typing import Protocol

from trotline.model.proxy import Way


class Ways(Protocol):
    @property
    def pools(self) -> tuple[str, ...]:
        """The pools whose tasks this worker takes; "" are tasks without one."""
        ...

    def way(self, lane: str, member: int) -> Way | None:
        """None: this worker's file does not have the member (any more)."""
        ...
