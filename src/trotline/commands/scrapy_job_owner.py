"""A job of the Scrapy bridge belongs to one spider."""

import msgspec

from trotline.errors import FrontierError, SettingsError
from trotline.ports.console import Console
from trotline.rules.scrapy_job_owner import NOTE, SpiderNote, other_arguments

_TRIES = 20


async def read_name(console: Console) -> str:
    """As Scrapy knows the spider; empty: the job does not say it."""
    (note,) = await console.read_notes([NOTE])
    try:
        return msgspec.json.decode(note.data, type=SpiderNote).name if note is not None else ""
    except msgspec.MsgspecError:
        return ""


async def join(console: Console, job: str, spider: SpiderNote) -> list[str]:
    """The arguments in which this spider differs from the one that began the job. SettingsError: it is another one."""
    for _ in range(_TRIES):
        (note,) = await console.read_notes([NOTE])
        there = msgspec.json.decode(note.data, type=SpiderNote) if note is not None else None
        if there is not None and there.name != spider.name:
            raise SettingsError(
                f"{job} is an unfinished job of the spider {there.name!r}, and not of {spider.name!r}",
                hint=f'Give this one another name (TROTLINE_JOB = "..."), or end that job: trotline cancel {job}',
            )
        if there is not None and (there.arguments is not None or spider.arguments is None):
            return other_arguments(there, spider)
        if await console.write_note(NOTE, msgspec.json.encode(spider), note.version if note is not None else 0):
            return []
    raise FrontierError(f"the note of {job} could not be written")
