"""The jobs that a frontier's place (a file, a server) knows."""

from typing import Protocol

from trotline.model.job import Job, LaneRules


class Jobs(Protocol):
    """J1 starting makes a new, empty, unsealed job; J2 `latest` is the one started last."""

    async def start(self, spider: str, rules: LaneRules, version: str = "") -> Job: ...

    async def latest(self, spider: str) -> Job | None: ...

    async def all(self) -> list[Job]: ...

    async def admit(self, job: str, version: str) -> Job:
        """Let workers with this version of the spider's code take part in the job."""
        ...

    async def close(self) -> None: ...
