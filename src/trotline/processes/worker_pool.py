"""The worker processes of this machine that take part in one job."""

import os
import socket
from collections.abc import Sequence

import msgspec

from trotline.adapters.host_process import process_name
from trotline.config import components
from trotline.config.code_version import code_version
from trotline.model.job import About
from trotline.model.limits import MIB, Limits
from trotline.model.proxy import Proxy
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.processes.child_config import Orders
from trotline.processes.child_process import Launched
from trotline.processes.fork_client import Nursery
from trotline.processes.supervised_child import start_child, worker_name
from trotline.spider.spider import Spider
from trotline.worker.parts import WorkerPolicy
from trotline.worker.supervisor import Child, Supervisor


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What worker processes are to do, and with how much."""

    ref: str
    """What `load` takes; the children load it again."""
    frontier: str
    sink: str
    processes: int = 1
    slots: int = 16
    prefetch: int | None = None
    max_pages: int | None = None
    """Of the job: whoever visits them, they count."""
    max_bytes: int | None = None
    max_time: Seconds | None = None
    """Of this command."""
    allow_private: bool = False
    allow: tuple[str, ...] = ()
    proxy: Proxy | None = None
    grace: Seconds = 30.0
    storage_patience: Seconds = 600.0
    """How long a file that cannot be written is waited for."""
    memory: int = 1024 * MIB
    """Bytes that one worker process may use."""
    visits: bool = True
    """A line in the ledger for every visit."""


class Crew:
    """A supervisor and its children, for one job."""

    def __init__(
        self,
        plan: Plan,
        spider: Spider,
        opened: OpenJob,
        launched: Sequence[Launched] = (),
        *,
        strict: bool = False,
    ) -> None:
        """`strict`: nobody is started with a version of the spider's file that the job does not know."""
        self._plan = plan
        self._opened = opened
        self._launched = list(launched)
        self._version = code_version(plan.ref)
        self._strict = strict
        self._nursery: Nursery | None = None
        self._begun = False
        self._supervisor = Supervisor(
            self._spawn,
            opened.frontier,
            count=plan.processes,
            parse=(spider.limits or Limits()).parse,
            grace=plan.grace,
            memory=plan.memory,
            evidence=components.evidence_path(plan.frontier),
            about=self._about,
        )

    async def run(self) -> None:
        """Until the job is finished or `stop` is called."""
        try:
            await self._supervisor.run()
        finally:
            if self._nursery is not None:
                self._nursery.close()

    def stop(self) -> None:
        """Children finish what is in flight; a second call ends them at once."""
        self._supervisor.stop()

    def stop_once(self) -> None:
        """Unless they are asked already."""
        if not self.stopping:
            self.stop()

    @property
    def stopping(self) -> bool:
        return self._supervisor.stopping

    @property
    def failure(self) -> str:
        """Why it was given up; empty if it was not."""
        return self._supervisor.failure

    @property
    def advice(self) -> str:
        """What to do next; empty if the failure says it."""
        return self._supervisor.advice

    def processes(self) -> int:
        """Those that live; before the first is there, those that are about to."""
        return len(self._supervisor.children) if self._begun else self._plan.processes

    def held_back(self) -> str:
        if self._supervisor.stopping:
            return "stopping: pages in flight may finish (interrupt again to stop at once)"
        return next((child.status for child in self._supervisor.children if child.status), "")

    async def _spawn(self, place: int) -> Child:
        plan = self._plan
        self._begun = True
        # One that is started only to be stopped takes nothing.
        pages = 0 if self._is_replaced() else None
        return start_child(
            Orders(
                name=worker_name(place),
                ref=plan.ref,
                frontier=plan.frontier,
                sink=plan.sink,
                job=self._opened.job,
                policy=WorkerPolicy(
                    slots=plan.slots,
                    prefetch=plan.prefetch,
                    max_pages=pages,
                    grace=plan.grace,
                    storage_patience=plan.storage_patience,
                    memory=plan.memory,
                    visits=plan.visits,
                ),
                allow_private=plan.allow_private,
                allow=plan.allow,
                proxy=plan.proxy,
                keeper=process_name(),
                marker=-1,
                status=-1,
            ),
            self._ready_child(),
        )

    def _is_replaced(self) -> bool:
        """The file is another one than that which the others were started with: then all leave, and look again."""
        version = code_version(self._plan.ref) if self._strict else self._version
        if version == self._version or self._opened.job.accepts(version):
            return False
        if not self._supervisor.stopping:
            self._supervisor.stop()
        return True

    def _ready_child(self) -> Launched | None:
        """A process that is warm already, if there is one. Where a child has died others may follow."""
        if self._launched:
            return self._launched.pop()
        if self._nursery is not None:
            return self._nursery.launch()
        if self._supervisor.stats.restarts:
            # It takes as long to be ready as a new interpreter: this once, a new interpreter it is.
            self._nursery = Nursery()
        return None

    def _about(self, child: Child) -> About:
        return About(
            host=socket.gethostname(),
            process=os.getpid(),
            version=self._version,
            slots=self._plan.slots,
            memory=child.resident(),
            held_back=child.status,
        )
