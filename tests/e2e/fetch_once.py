"""One fetch of one reply, over real sockets."""

from tests.e2e.raw_site import Reply, fetcher, site, task

from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits


async def answer_to(
    reply: Reply | bytes, limits: Limits | None = None, path: str = "/", **options: object
) -> Answer | Failure:
    async with site(reply) as there, fetcher(limits, **options) as ours:
        return await ours.fetch(task(there.url(path)))


async def failure_of(reply: Reply | bytes, limits: Limits | None = None, **options: object) -> Failure:
    outcome = await answer_to(reply, limits, **options)
    assert isinstance(outcome, Failure), outcome
    return outcome


async def answered(reply: Reply | bytes, limits: Limits | None = None, **options: object) -> Answer:
    outcome = await answer_to(reply, limits, **options)
    assert isinstance(outcome, Answer), outcome
    return outcome
