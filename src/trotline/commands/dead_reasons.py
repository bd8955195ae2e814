"""Why tasks of a job are dead and records were rejected, each reason with an example."""

from collections.abc import Mapping

import msgspec

from trotline.ports.console import Console

BAD_RECORD = "bad record: "
"""How reasons of rejected records begin."""
REJECTED = "records rejected"
"""Their tally."""
MOST = 6
"""Reasons that get an example; the others are counted."""


class Burial(msgspec.Struct, frozen=True, kw_only=True):
    why: str
    count: int
    url: str = ""
    """A page that it happened to."""
    said: str = ""
    """What there is to see: the error's own message, or the rejected record."""

    @property
    def of_record(self) -> bool:
        return self.why.startswith(BAD_RECORD)


def of_tasks_and_records(reasons: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The reasons for which tasks are dead, and those for which records were rejected."""
    records = {why: count for why, count in reasons.items() if why.startswith(BAD_RECORD)}
    return {why: count for why, count in reasons.items() if why not in records}, records


async def burials(console: Console) -> tuple[Burial, ...]:
    """The most frequent first."""
    reasons = sorted((await console.reasons()).items(), key=lambda reason: -reason[1])
    return tuple(
        [await _with_example(console, why, count) for why, count in reasons[:MOST]]
        + [Burial(why=why, count=count) for why, count in reasons[MOST:]]
    )


async def _with_example(console: Console, why: str, count: int) -> Burial:
    for grave in await console.graves(why=why, limit=1):
        said = grave.record or next(iter(grave.detail.splitlines()), "")
        return Burial(why=why, count=count, url=grave.url, said=said)
    return Burial(why=why, count=count)
