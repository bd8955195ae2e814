"""Which job does the author mean? `shop`, `shop-3`, `shop.py`, or simply the only one here."""

import difflib

import msgspec

from trotline.commands.find_jobs import Here, Target, console_of, frontiers, jobs_here, survey
from trotline.commands.scrapy_job_owner import read_name
from trotline.config.backend_urls import public
from trotline.config.backends import is_local
from trotline.config.settings import Settings
from trotline.errors import FrontierError, SettingsError
from trotline.model.queue_job import is_scrapy
from trotline.rules.scrapy_job_owner import job_name

__all__ = ["Here", "Target", "console_of", "find", "frontiers", "jobs_here", "not_here", "spider_name", "survey"]

_LOOKED_UP = 50
"""Names of Scrapy jobs that are looked up for a name which is none of them."""
_NAMED = 20
"""Names in one message; a folder of a thousand spiders has a list of its own."""


def spider_name(text: str) -> str:
    """The spider's name behind `shop.py`, `shop.py:shop` or `package.module:shop`; anything else is a name already."""
    if text.endswith((".py", ".toml")) or ":" in text or "/" in text:
        from trotline.config.spider_loader import load

        return load(text).name
    return text


async def find(settings: Settings, wanted: str | None, usage: str = "") -> Target:
    """The job that `wanted` names; the newest one if it names a spider; the newest of all if it is None. `usage`: how
    it is named in a command whose first argument is another one."""
    name = spider_name(wanted) if wanted else None
    known = await jobs_here(settings)
    fitting = [target for target in known if name is None or name in (target.job.id, target.job.spider)]
    if name is None and len({target.job.spider for target in known}) > 1:
        raise SettingsError(
            "there are jobs of several spiders here: which one?", hint=_names(known) + (usage and f"\n  {usage}")
        )
    found = await _with_scrapy_name(fitting[-1]) if fitting else await _of_scrapy(known, name or "")
    if found is None:
        raise not_here(settings, name, known)
    return msgspec.structs.replace(found, typed=wanted or "", followed=_has_successor(found, known))


def _has_successor(target: Target, known: list[Target]) -> bool:
    place = target.frontier, target.job.spider
    own = [other.job.id for other in known if (other.frontier, other.job.spider) == place]
    return bool(own) and own[-1] != target.job.id


async def _of_scrapy(known: list[Target], name: str) -> Target | None:
    """The newest job of the spider that a Scrapy project knows by this name: that of its job is another one, if it has
    other letters, or TROTLINE_JOB."""
    newest = {target.job.spider: target for target in known if is_scrapy(target.job)}
    if usual := newest.get(job_name(name)):
        return await _with_scrapy_name(usual)
    for target in sorted(newest.values(), key=lambda one: one.job.started_at, reverse=True)[:_LOOKED_UP]:
        found = await _with_scrapy_name(target)
        if found.scrapy == name:
            return found
    return None


async def _with_scrapy_name(target: Target) -> Target:
    if not is_scrapy(target.job):
        return target
    try:
        async with console_of(target) as console:
            return msgspec.structs.replace(target, scrapy=await read_name(console))
    except FrontierError:
        # The command itself says what is wrong with it.
        return target


def not_here(settings: Settings, name: str | None, known: list[Target]) -> SettingsError:
    """No job that is known here is of this name; of none, if it is None."""
    what = f"there is no job or spider {name!r} here" if name else "there is no job here yet"
    return SettingsError(what, hint=_near(settings, name, known))


def _near(settings: Settings, name: str | None, known: list[Target]) -> str:
    if not known and settings.frontier and not is_local(settings.frontier):
        # Perhaps in an outage: a server that was emptied looks like one that was never used.
        return (
            f"{public(settings.frontier)} answers and has no job at all. If there was one: is this the right server "
            "and database (--frontier)? Was it emptied, or restarted without its data? Its log and its settings of "
            "persistence say it. What it had is gone then; a new job: trotline start FILE, or the next scrapy crawl"
        )
    if not known:
        return "Run a spider first (trotline run FILE), go to its folder, or name its place: --frontier URL"
    words = [target.job.spider for target in known] + [target.job.id for target in known]
    near = difflib.get_close_matches(name or "", words, n=1)
    return f"Did you mean {near[0]}?" if near else _names(known)


def _names(known: list[Target]) -> str:
    names = sorted({target.job.spider for target in known})
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"Give one of: {', '.join(names[:_NAMED])}{more}   (see: trotline status)"
