"""`start` and `work` delete old jobs: a coordinator is optional."""

from trotline.config import backends
from trotline.coordinator.dependencies import CoordinatorPolicy
from trotline.errors import FrontierError


async def retire_old(frontier: str) -> list[str]:
    """Forget a few jobs that ended long ago; their ids. An unreachable frontier is reported by its first real use."""
    try:
        jobs = await backends.open_jobs(frontier)
        try:
            return await jobs.retire(CoordinatorPolicy().keep)
        finally:
            await jobs.close()
    except FrontierError:
        return []
