"""The job of a Scrapy spider: its name, and what it keeps about the spider, so that no other one joins it."""

import hashlib
import re
import shlex
from collections.abc import Mapping

import msgspec

NOTE = "scrapy spider"
"""The note of a job with its `SpiderNote`."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64
_DIGEST = 8


class SpiderNote(msgspec.Struct, frozen=True):
    name: str
    """As Scrapy knows it."""
    arguments: dict[str, str] | None = None
    """Name -> digest of its value, which may be a secret. None: not known, for a job that was imported."""


def job_name(spider: str) -> str:
    """The spider's name in the letters of jobs. If that changes it, a digest keeps it apart from similar names."""
    name = _NOT_IN_A_NAME.sub("-", spider)
    if name == spider and 0 < len(name) <= _LONGEST_NAME:
        return name
    return f"{name.strip('-')[: _LONGEST_NAME - _DIGEST - 1] or 'spider'}-{_digest(spider)}"


def crawl_command(spider: str, job: str) -> str:
    """What starts the spider with this job. `spider`: as Scrapy knows it; `job`: the job's name."""
    named = "" if job_name(spider) == job else f" -s TROTLINE_JOB={job}"
    return f"scrapy crawl {shlex.quote(spider)}{named}"


def digests(arguments: Mapping[str, str]) -> dict[str, str]:
    return {name: _digest(value) for name, value in arguments.items()}


def other_arguments(there: SpiderNote, here: SpiderNote) -> list[str]:
    """The names of arguments whose values differ."""
    if there.arguments is None or here.arguments is None:
        return []
    names = sorted(there.arguments.keys() | here.arguments.keys())
    return [name for name in names if there.arguments.get(name) != here.arguments.get(name)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
