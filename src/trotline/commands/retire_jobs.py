"""Old jobs are cleared away by whoever starts a job or takes part in one: there need not be a coordinator."""

from trotline.config import backends
from trotline.coordinator.parts import CoordinatorPolicy
from trotline.errors import FrontierError


async def retire_old(frontier: str) -> list[str]:
    """Forget a few jobs that ended long ago; which. A place that does not answer is no reason not to work: those who
    need it say so themselves."""
    try:
        jobs = await backends.open_jobs(frontier)
        try:
            return await jobs.retire(CoordinatorPolicy().keep)
        finally:
            await jobs.close()
    except FrontierError:
        return []
