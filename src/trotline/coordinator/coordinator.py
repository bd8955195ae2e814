"""Runs a leader election per spider; several coordinators may run for the same spiders, one of them leads."""

import asyncio
from collections.abc import Sequence

from trotline.coordinator.dependencies import CoordinatorEvent, CoordinatorParts, CoordinatorPolicy, SpiderConfig
from trotline.coordinator.job_list import JobList
from trotline.coordinator.leader import Leader


class Coordinator:
    """`name` must be unique among all processes, past and present."""

    def __init__(
        self,
        name: str,
        configs: Sequence[SpiderConfig],
        parts: CoordinatorParts,
        policy: CoordinatorPolicy | None = None,
    ) -> None:
        policy = policy or CoordinatorPolicy()
        self._parts = parts
        self._watch = parts.frontier_watch
        self._spiders = ", ".join(config.spider for config in configs)
        job_list = JobList(parts.jobs, parts.clock)
        self._leaders = [Leader(name, config, parts, policy, job_list) for config in configs]

    async def run(self) -> None:
        """Runs until cancelled, then resigns."""
        async with asyncio.TaskGroup() as group:
            for leader in self._leaders:
                group.create_task(leader.run())
            if self._watch is not None:
                group.create_task(self._watch.run(self._emit))

    def _emit(self, event: str, text: str, **data: object) -> None:
        self._parts.emit(CoordinatorEvent(event=event, spider=self._spiders, text=text, data=data))
