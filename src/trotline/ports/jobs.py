"""The jobs that a frontier's place (a file, a server) knows."""

from typing import Protocol

from trotline.model.job import Job, LaneRules
from trotline.model.time import Seconds


class Jobs(Protocol):
    """J1 starting makes a new, empty, unsealed job; J2 `latest` is the one started last; J3 of a job that is forgotten
    nothing is left, and the others stay as they are; J4 only what has ended retires, and a spider's newest job stays.
    """

    async def start(self, spider: str, rules: LaneRules, version: str = "") -> Job: ...

    async def latest(self, spider: str) -> Job | None: ...

    async def all(self) -> list[Job]:
        """Those that can be read. One that another program damaged does not hide the others."""
        ...

    def unreadable(self) -> tuple[str, ...]:
        """The ids that the last `all` had to leave out. `forget` takes them."""
        ...

    async def admit(self, job: str, version: str) -> Job:
        """Let workers with this version of the spider's code take part in the job."""
        ...

    async def forget(self, job: str) -> None:
        """Remove all that is kept of a job, in small steps. A second try goes on where one stopped; one that is not
        there is forgotten already."""
        ...

    async def retire(self, age: Seconds, most: int = 2) -> list[str]:
        """Forget the oldest jobs that were finished or cancelled so long ago, so many at most. Their ids."""
        ...

    async def close(self) -> None: ...
