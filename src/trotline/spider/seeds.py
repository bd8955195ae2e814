"""Seeds: URLs and tasks in code, files, sitemaps.

Files are read here, line by line. A sitemap becomes a task of the built-in route for sitemaps.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from trotline.errors import SpiderRefused
from trotline.model import task_json
from trotline.model.sitemap_seed import SitemapSeed
from trotline.model.task import SOON, Task
from trotline.rules import task_checks
from trotline.rules.task_checks import shown
from trotline.rules.urls import Address, read, resolve

if TYPE_CHECKING:
    from trotline.spider.route import Route


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The URLs of a sitemap (also gzip, also an index of sitemaps) that match."""

    url: str
    match: str | re.Pattern[str] | None = None
    """A regular expression searched in URLs; None: all."""
    route: str = ""
    """Set by the spider."""

    def __post_init__(self) -> None:
        _check_sitemap(self)


@dataclass(frozen=True, slots=True)
class RobotsSitemaps:
    """The URLs of all sitemaps in a site's robots.txt."""

    url: str
    """Any URL of the site."""
    match: str | re.Pattern[str] | None = None
    route: str = ""

    def __post_init__(self) -> None:
        _check_sitemap(self)


@dataclass(frozen=True, slots=True)
class FileSeeds:
    """One URL or JSON object (`{"url": ..., "job_type": ...}`) per line; `-` reads standard input."""

    path: str | PathLike[str]

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | PathLike):
            raise ValueError(f'FileSeeds: {shown(self.path)} is not a path; write FileSeeds("urls.txt")')


def _check_sitemap(seed: "Sitemap | RobotsSitemaps") -> None:
    name = type(seed).__name__
    if not isinstance(seed.url, str):
        raise ValueError(f'{name}: {shown(seed.url)} is not a URL; write {name}("https://shop.example/...")')
    if seed.match is not None and not isinstance(seed.match, str | re.Pattern):
        raise ValueError(f'{name}: match is {shown(seed.match)}; give a regular expression, like "/product/"')


Seed = str | Task | Sitemap | RobotsSitemaps | FileSeeds
Seeds = Seed | Iterable[Seed] | Callable[[], Iterable[Seed]]


def expand(route: "Route", seeds: Seeds) -> Iterator[Task]:
    """The seeds of one route, in order; SpiderRefused names an invalid one."""
    for seed in _each(route, seeds):
        if isinstance(seed, FileSeeds):
            yield from _from_file(route, seed.path)
        elif isinstance(seed, Sitemap | RobotsSitemaps):
            yield _sitemap_task(route, seed)
        else:
            yield _task(route, seed, f"seeds of route {route.name!r}")


def written_urls(seeds: Seeds) -> list[str] | None:
    """The URLs in the code; None if some come from a file or a function."""
    if isinstance(seeds, Seed):
        seeds = (seeds,)
    if not isinstance(seeds, list | tuple | set | frozenset):
        return None
    if any(isinstance(seed, FileSeeds) for seed in seeds):
        return None
    return [seed if isinstance(seed, str) else seed.url for seed in seeds if not isinstance(seed, FileSeeds)]


def _each(route: "Route", seeds: Seeds) -> Iterable[Seed]:
    if isinstance(seeds, Seed):
        return (seeds,)
    given = seeds() if callable(seeds) else seeds
    if isinstance(given, Seed):
        return (given,)
    if not isinstance(given, Iterable):
        raise _refused(route, f"{shown(given)} is not a list of seeds")
    return given


def _task(route: "Route", seed: object, place: str) -> Task:
    try:
        if isinstance(seed, Task):
            return task_checks.task(seed if seed.route else msgspec.structs.replace(seed, route=route.name))
        return route.task(seed)  # type: ignore[arg-type]  # the draft checks its type
    except ValueError as error:
        raise _refused(route, f"{place}: {error}") from error


def _sitemap_task(route: "Route", seed: Sitemap | RobotsSitemaps) -> Task:
    address = read(seed.url)
    if not isinstance(address, Address):
        raise _refused(route, f"the sitemap {seed.url!r} cannot be fetched: {address.why}")
    robots = isinstance(seed, RobotsSitemaps)
    try:
        pattern = re.compile(seed.match or "")
    except re.error as error:
        raise _refused(route, f"match={seed.match!r} of a sitemap is not a regular expression: {error}") from error
    wanted = SitemapSeed(
        route=seed.route or route.name,
        host=address.host.removeprefix("www."),
        match=pattern.pattern,
        flags=pattern.flags if pattern.pattern else 0,
        robots=robots,
    )
    url = resolve(address.url, "/robots.txt") if robots else address.url
    return wanted.task(url or address.url, priority=SOON, retries=route.spider.retries, pool=route.pool)


def _from_file(route: "Route", path: str | PathLike[str]) -> Iterator[Task]:
    if str(path) == "-":
        yield from read_lines(route, sys.stdin, "standard input")
        return
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            yield from read_lines(route, lines, str(path))
    except OSError as error:
        raise _refused(route, f"the seeds in {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise _refused(route, f"the seeds in {path} are not UTF-8 text: {error}") from error


def read_lines(route: "Route", lines: TextIO | Iterable[str], name: str) -> Iterator[Task]:
    """The tasks in these lines; blank lines and comments (#) are skipped."""
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            yield parse_line(route, line)
        except ValueError as error:
            raise _refused(route, f"{name}, line {number}: {error}") from error


def parse_line(route: "Route", line: str, priority: int | None = None) -> Task:
    """The task in a non-empty line; ValueError says what is wrong. `priority`: the default, instead of the route's."""
    if not line.startswith("{"):
        return route.task(line) if priority is None else route.task(line, priority=priority)
    defaults = route.seed_defaults() | ({} if priority is None else {"priority": priority})
    try:
        return task_checks.task(task_json.from_seed(defaults | msgspec.json.decode(line, type=dict)))
    except (TypeError, RecursionError, msgspec.ValidationError) as error:
        raise ValueError(str(error)) from error
    except msgspec.DecodeError as error:
        raise ValueError(f"is not valid JSON: {error}") from error


def _refused(route: "Route", what: str) -> SpiderRefused:
    hint = 'A seed is an absolute URL, a task, or a JSON object like {"url": "https://shop.example/"}.'
    return SpiderRefused(f"spider {route.spider.name!r}: {what}", hint=hint)
