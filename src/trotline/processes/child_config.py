"""The configuration of a child process."""

import msgspec

from trotline.config.settings import Settings
from trotline.model.job import Job
from trotline.model.work_stats import WorkStats


class ChildStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A status line of a child, as JSON."""

    held_back: str = ""
    """Why it does not lease; empty if it does."""
    pools: tuple[str, ...] = ()
    """The proxy pools that it serves; "" are direct tasks."""
    proxies_trouble: str = ""
    """Why its proxies file cannot be used now; empty if it can."""
    stats: WorkStats | None = None


class ChildConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One line of JSON on the child's standard input."""

    name: str
    ref: str
    settings: Settings
    job: Job
    max_pages: int | None = None
    """For this child; 0 if it is started only to be stopped."""
    keeper: str
    """The supervisor's process, which returns our leases if we die."""
    marker: int
    """File descriptor of the shared memory for the marker."""
    status: int
    """File descriptor for status lines."""
    log_mark: str = ""
    """Before each line of a JSON log."""
