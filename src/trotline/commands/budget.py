"""The limits of a job: set by the command that starts or resumes it, enforced by the frontier."""

from trotline.model.job import Budget, State
from trotline.ports.console import Console
from trotline.spider.spider import Spider


async def give_budget(console: Console, spider: Spider, pages: int | None, size: int | None) -> None:
    """Of a command that starts or resumes the job: so many pages and bytes from now on, and no older limit."""
    progress = await console.progress()
    budget = progress.allowing(pages or spider.max_pages, size)
    limited = budget.pages is not None or budget.size is not None
    if limited or progress.budget != Budget():
        await console.set_budget(budget if limited else Budget())
    if progress.state is State.CANCELLED and progress.spent:
        # Workers cancel a job whose budget is spent, so that all of them and the coordinator leave it.
        await console.steer(State.RUNNING)


async def lower_budget(console: Console, spider: Spider, pages: int | None, size: int | None) -> None:
    """Of a worker that joins the job: it may lower the limits, not raise them."""
    progress = await console.progress()
    there, wanted = progress.budget, progress.allowing(pages or spider.max_pages, size)
    lower_pages = wanted.pages is not None and (there.pages is None or wanted.pages < there.pages)
    lower_size = wanted.size is not None and (there.size is None or wanted.size < there.size)
    if lower_pages or lower_size:
        chosen = Budget(
            pages=wanted.pages if lower_pages else there.pages,
            size=wanted.size if lower_size else there.size,
            before=wanted.before if lower_pages else there.before,
            size_before=wanted.size_before if lower_size else there.size_before,
        )
        await console.set_budget(chosen)
