"""Has the job ended? The client's thread finds out, while Scrapy's thread may add requests."""

import logging
import shlex
import threading

from trotline.config.backend_urls import repeatable
from trotline.model.job import Progress, State

log = logging.getLogger("trotline.scrapy")

_CANCELLED = "cancelled"
_FAILED = "frontier_failed"


class JobEnd:
    def __init__(self) -> None:
        self.over = False
        """There is no job to take part in."""
        self.ended = False
        """The job is finished, over all processes; what is added later reopens it."""
        self.why = ""
        """An operator ended it: "cancelled", or the limit that it has reached; or the frontier failed."""
        self.gone = False
        self.dead = 0
        """Pages in the graveyard at the end of the job."""
        self.epoch = 0
        """Grows with everything that is added."""
        self.lock = threading.Lock()
        """Nothing is added between the last look at the job and `ended`."""

    def decide(self, epoch: int, unsent: int, progress: Progress) -> bool:
        """After a look at the job that began in this epoch and found nothing left. True: it ends with this."""
        with self.lock:
            ends = epoch == self.epoch and not unsent and not self.ended
            self.ended = self.ended or ends
        if ends:
            self.why = progress.spent or (_CANCELLED if progress.state is State.CANCELLED else "")
        return ends

    def fail(self, *, gone: bool) -> None:
        """`gone`: the frontier answers, and does not know the job."""
        self.ended = True
        self.gone = gone
        self.why = _FAILED

    def log(self, job: str, spider: str, frontier: str, reason: str, *, announced: bool) -> None:
        """When the process ends. `frontier`: its URL, for commands; `reason`: that of Scrapy; `announced`: this process
        says that the job is finished."""
        if self.why == _CANCELLED:
            log.info("scrapy.cancelled %s was cancelled; a new job begins with the next: scrapy crawl %s", job, spider)
        elif self.why == _FAILED and self.gone:
            log.error(
                "scrapy.stopped %s is not in the frontier any more: it was forgotten (trotline jobs --forget), or its "
                "server lost its data. It ends in all processes, and the next begins from the start: scrapy crawl %s",
                job, spider,
            )  # fmt: skip
        elif self.why == _FAILED:
            log.error(
                "scrapy.stopped %s: the frontier failed (scrapy.frontier_failed, above). When it is in order, the job "
                "goes on with the next: scrapy crawl %s; if its data is gone, that begins from the start",
                job, spider,
            )  # fmt: skip
        elif announced and self.dead:
            dead = shlex.join(("trotline", "dead", job, "--frontier", repeatable(frontier)))
            log.warning(
                "scrapy.finished %s is finished, in all processes, but %s dead: what they link to was not visited. "
                "See why: %s; visit them again: %s --revive, and then: scrapy crawl %s",
                job, "1 page is" if self.dead == 1 else f"{self.dead:,} pages are", dead, dead, spider,
            )  # fmt: skip
        elif announced:
            log.info("scrapy.finished %s is finished, in all processes", job)
        elif reason != "finished":
            log.info(
                "scrapy.stopped %s (%s); the job goes on in other processes, or with the next: scrapy crawl %s",
                job, reason, spider,
            )  # fmt: skip
