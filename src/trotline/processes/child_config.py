"""What a supervisor tells a child."""

import msgspec

from trotline.model.job import Job
from trotline.model.proxy import Proxy
from trotline.worker.parts import WorkerPolicy


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is told, as one line of JSON."""

    name: str
    ref: str
    frontier: str
    sink: str
    job: Job
    policy: WorkerPolicy
    allow_private: bool
    allow: tuple[str, ...] = ()
    proxy: Proxy | None = None
    keeper: str
    """The supervisor's process."""
    marker: int
    """File descriptor of the shared cell."""
    status: int
    """File descriptor to write lines about ourselves to."""
