"""The worker processes of this machine for one job."""

import os
import socket
from collections.abc import Sequence

import msgspec

from trotline.adapters.host_process import process_name
from trotline.config import components
from trotline.config.code_version import code_version
from trotline.config.settings import Settings
from trotline.model.job import WorkerInfo
from trotline.model.limits import Limits
from trotline.model.metrics import WorkerFigures
from trotline.model.work_stats import total
from trotline.ports.backend import OpenJob
from trotline.processes.child_config import ChildConfig
from trotline.processes.fork_client import ForkServer
from trotline.processes.host_limits import bandwidth, cpu_cores, host_memory, received
from trotline.processes.prestarted_child import WaitingChild
from trotline.processes.signals import STOPPING
from trotline.processes.supervised_child import start_child, worker_name
from trotline.rules import redaction
from trotline.spider.spider import Spider
from trotline.worker.archive_losses import tell_of_a_death
from trotline.worker.supervisor import Child, Supervisor


class WorkerPool:
    """A supervisor and its children, for one job."""

    def __init__(
        self,
        ref: str,
        settings: Settings,
        spider: Spider,
        opened: OpenJob,
        launched: Sequence[WaitingChild] = (),
        *,
        strict: bool = False,
    ) -> None:
        """`ref`: the argument of `load`, used by the children. `strict`: start no child with a version of the spider's
        file that the job does not accept."""
        self._ref = ref
        self._settings = settings
        self._opened = opened
        self._launched = list(launched)
        self._version = code_version(ref)
        self._strict = strict
        self._fork_server: ForkServer | None = None
        self._begun = False
        self._death_told = False
        self._supervisor = Supervisor(
            self._spawn,
            opened.frontier,
            count=settings.processes,
            parse=(spider.limits or Limits()).parse,
            grace=settings.grace,
            memory=settings.memory,
            evidence=components.evidence_path(settings.frontier),
            about=self._about,
        )

    async def run(self) -> None:
        """Until the job is finished or `stop` is called."""
        try:
            await self._supervisor.run()
            await self._tell_of_deaths()
        finally:
            if self._fork_server is not None:
                self._fork_server.close()

    def stop(self) -> None:
        """Children finish what is in flight; a second call ends them at once."""
        self._supervisor.stop()

    def stop_once(self) -> None:
        """Unless they are stopping already."""
        if not self.stopping:
            self.stop()

    @property
    def stopping(self) -> bool:
        return self._supervisor.stopping

    @property
    def failure(self) -> str:
        """Why the supervisor gave up; empty if it did not."""
        return self._supervisor.failure

    @property
    def advice(self) -> str:
        """What to do next; empty if `failure` contains it."""
        return self._supervisor.advice

    def processes(self) -> int:
        """Living children; before the first has started, the configured number."""
        return len(self._supervisor.children) if self._begun else self._settings.processes

    def held_back(self) -> str:
        if self._supervisor.stopping:
            return STOPPING
        return next((child.status for child in self._supervisor.children if child.status), "")

    def figures(self) -> WorkerFigures:
        """For the metrics."""
        children = self._supervisor.children
        living = [child.stats for child in children if child.stats is not None]
        stats = total((self._supervisor.ended_stats, *living))
        return WorkerFigures(
            # The lag of a process that has ended is over.
            stats=msgspec.structs.replace(stats, lag=max((each.lag for each in living), default=0.0)),
            processes=len(children),
            restarts=self._supervisor.stats.restarts,
            slots=len(children) * self._settings.slots,
            memory=sum(child.resident() for child in children),
            memory_limit=len(children) * self._settings.memory,
        )

    async def _tell_of_deaths(self) -> None:
        """Pages that a process lost from the archive, and had not told of, are missing in the job's count."""
        if self._settings.archive and self._supervisor.stats.restarts and not self._death_told:
            self._death_told = await tell_of_a_death(self._opened.console, redaction.text(self._settings.archive))

    async def _spawn(self, place: int) -> Child:
        self._begun = True
        await self._tell_of_deaths()
        return start_child(
            ChildConfig(
                name=worker_name(place),
                ref=self._ref,
                settings=self._settings,
                job=self._opened.job,
                # A child that is started only to be stopped leases nothing.
                max_pages=0 if self._is_replaced() else None,
                keeper=process_name(),
                marker=-1,
                status=-1,
            ),
            self._ready_child(),
        )

    def _is_replaced(self) -> bool:
        """Did the spider's file change since the others started? Then all stop, to check the new version."""
        version = code_version(self._ref) if self._strict else self._version
        if version == self._version or self._opened.job.accepts(version):
            return False
        if not self._supervisor.stopping:
            self._supervisor.stop()
        return True

    def _ready_child(self) -> WaitingChild | None:
        """A process that is started already, if there is one. After a death, the fork server starts them."""
        if self._launched:
            return self._launched.pop()
        if self._fork_server is not None:
            return self._fork_server.launch()
        if self._supervisor.stats.restarts:
            # Not used yet: it takes as long to start as a new child.
            self._fork_server = ForkServer()
        return None

    def _about(self, child: Child) -> WorkerInfo:
        return WorkerInfo(
            host=socket.gethostname(),
            process=os.getpid(),
            version=self._version,
            slots=self._settings.slots,
            memory=child.resident(),
            held_back=child.status,
            pools=child.pools,
            proxies_trouble=child.proxies_trouble,
            regions=self._settings.regions,
            routes=self._settings.routes,
            memory_limit=self._settings.memory,
            cpu_cores=cpu_cores(),
            host_memory=host_memory(),
            bandwidth=self._settings.bandwidth or bandwidth(),
            host_received=received(),
            stats=child.stats,
        )
