"""Jobs that were created here and whose seeds are still being put: the answer does not wait for a million of them."""

import asyncio
import logging

from trotline.commands.start import MadeJob, StartPlan, seed_job
from trotline.spider.spider import Spider
from trotline.web.errors import problem, refusal
from trotline.web.log import LOGGER, event

_LOG = logging.getLogger(LOGGER)


class Seeding:
    """If the server ends in the middle, nothing is lost: `trotline start` goes on, and duplicates are ignored."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self.said: dict[str, str] = {}
        """Job -> why its seeding waits, or failed."""

    def begin(self, plan: StartPlan, spider: Spider, made: MadeJob) -> None:
        task = asyncio.create_task(self._seed(plan, spider, made))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _seed(self, plan: StartPlan, spider: Spider, made: MadeJob) -> None:
        job = made.found.job.id

        def say(text: str) -> None:
            self.said[job] = text

        try:
            seeded = await seed_job(plan, spider, made, say)
            self.said.pop(job, None)
            event(_LOG, logging.INFO, "web.seeded", job=job, new=seeded.new, refused=seeded.refused.total())
        except Exception as error:
            trouble = problem(refusal(error))
            say(f"seeding failed: {trouble.what}" + (f" ({trouble.hint})" if trouble.hint else ""))
            event(_LOG, logging.WARNING, "web.seeding_failed", job=job, why=trouble.what)
        finally:
            await made.opened.close()
