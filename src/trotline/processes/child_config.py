"""What a supervisor tells a child."""

import msgspec

from trotline.config.settings import Settings
from trotline.model.job import Job


class ChildConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One line of JSON on the child's standard input."""

    name: str
    ref: str
    settings: Settings
    job: Job
    max_pages: int | None = None
    """Of this child alone: 0 if it is started only to be stopped."""
    keeper: str
    """The supervisor's process."""
    marker: int
    """File descriptor of the shared cell."""
    status: int
    """File descriptor to write lines about ourselves to."""
