"""What a spider is crawled with, made from its settings: fetcher, robots.txt, gate, validators, evidence."""

import random
from collections.abc import Callable, Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trotline.config.backend_urls import public
from trotline.config.backends import is_local, local_path
from trotline.errors import SettingsError
from trotline.model.client_kind import Client
from trotline.model.job import Job
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy
from trotline.model.time import Seconds
from trotline.rules.backend_urls import scheme_of

if TYPE_CHECKING:
    # Loaded when needed: `trotline --help` must not pay for an HTTP client.
    from trotline.adapters.files.crash_pages import EvidenceFolder
    from trotline.adapters.http.robots import RobotsTxt
    from trotline.adapters.sqlite.http_validators import SqliteValidators
    from trotline.frontier.gate import Gate
    from trotline.model.stored_file import Files
    from trotline.ports.fetcher import Fetcher
    from trotline.ports.file_store import FileStore
    from trotline.ports.shared_cache import SharedCache
    from trotline.ports.tracer import Tracer
    from trotline.spider.spider import Spider

OBJECT = "object:"
"""In place of a scheme: a sink that is an object of the program which embeds Trotline."""
_LOCAL = Path(".trotline")
"""Where a worker keeps what belongs to its own machine."""


def user_agent(spider: "Spider") -> str:
    """The User-Agent: the spider's own, or Trotline's name and version."""
    if spider.user_agent:
        return spider.user_agent
    from importlib.metadata import version

    return f"Trotline/{version('trotline')} ({spider.name})"


def open_validators(frontier_url: str, job: Job, sink: str, spider: "Spider") -> "SqliteValidators | None":
    """ETags and Last-Modified of pages, in a file next to the frontier's; None if no route uses them.

    They vouch for the rows of one sink, made by one version of the spider's file: for others, pages are read again.
    Only where the frontier is a file: workers of a fleet do not know what the others have read, and read it all.
    """
    if not local_path(frontier_url):
        return None
    if not any(route.conditional for route in spider.routes.values()):
        return None
    from trotline.adapters.sqlite.http_validators import SqliteValidators

    file = Path(local_path(frontier_url)).with_name(f"{spider.name}.validators.db")
    # From another folder the same words name another file.
    path = "" if sink.startswith(OBJECT) else local_path(sink)
    place = f"{scheme_of(sink)} {Path(path).absolute()}" if path else public(sink)
    return SqliteValidators(file, spider.name, copy=f"{job.version} {place}")


async def check_validators(frontier_url: str, job: Job, sink: str, spider: "Spider", *, rows: bool) -> None:
    """Before pages are visited. Without the rows they vouch for, validators are worth nothing: every page must come."""
    validators = open_validators(frontier_url, job, sink, spider)
    if validators is None:
        return
    try:
        if not rows:
            await validators.forget()
    finally:
        await validators.close()


def open_fetcher(
    spider: "Spider",
    *,
    allow_private: bool,
    allow: Sequence[str] = (),
    proxy: Proxy | None = None,
    slots: int = 16,
    timings: bool = False,
    stores: bool = True,
    archives: bool = False,
) -> "Fetcher":
    """`proxy`: for all requests that are not sent through a member of a pool. `stores`: files are stored; else they are
    read like pages. `archives`: pages are archived, those that come gzip-coded as they came."""
    from trotline.adapters.http.fetcher import HttpFetcher
    from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher

    secrets = spider.secret_scope
    direct = HttpFetcher(
        spider.limits or Limits(),
        user_agent=user_agent(spider),
        headers=spider.headers,
        secret_headers=spider.secret_headers,
        cookies=spider.cookies,
        cookie_hosts=secrets.hosts,
        secret_scope=secrets,
        allow_private=allow_private,
        allow=allow,
        proxy=proxy,
        slots=slots,
        types=spider.types,
        insecure_hosts=spider.insecure_hosts,
        spider=spider.name,
        timings=timings,
        keeps_cookies=spider.keeps_cookies,
        routes={name: route.request for name, route in spider.routes.items() if route.request is not None},
        files=spider.files,
        store=None if spider.files is None or not stores else open_file_store(spider.files),
        keeps_wire=archives,
    )
    plain = PooledFetcher.over(direct, most_idle=slots)
    if Client.BROWSER not in spider.clients:
        return plain
    from trotline.adapters.browser_like.fetcher import BrowserWays
    from trotline.adapters.browser_like.fetcher_per_client import FetcherByClient

    browser = BrowserWays(direct, spider.headers, slots=slots, most_idle=slots)
    return FetcherByClient(
        plain, browser, spider.client, {route.name: route.client for route in spider.routes.values()}
    )


def open_file_store(files: "Files") -> "FileStore":
    """Where downloads go: a folder, or `s3://BUCKET/PREFIX`. SettingsError if that cannot be used."""
    if files.folder.startswith("s3://"):
        return _s3_files(files)
    from trotline.adapters.files.file_store import FolderStore

    return FolderStore(files)


def _s3_files(files: "Files") -> "FileStore":
    try:
        from trotline.adapters.s3.file_store import S3Files
    except ImportError as error:
        raise SettingsError(
            "downloads on S3 need a package that is not installed", hint="pip install '.[s3]'"
        ) from error
    from trotline.adapters.s3.s3_url import address_of

    try:
        return S3Files(files, address_of(files.folder))
    except ValueError as error:
        raise SettingsError(f"Files(folder): {error}") from error


def public_headers(spider: "Spider") -> tuple[tuple[str, str], ...]:
    """What the default client sends with every request of the spider, without secrets."""
    from trotline.adapters.http.fetcher import ACCEPT, ACCEPT_ENCODING

    own = {"User-Agent": user_agent(spider), "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
    return tuple({**own, **spider.headers}.items())


def open_robots(
    fetcher: "Fetcher", spider: "Spider", cache: "SharedCache | None" = None, patience: Seconds | None = None
) -> "RobotsTxt":
    """With a shared cache, robots.txt is fetched once for all workers. `patience`: `give_up` of the job."""
    from trotline.adapters.http.robots import RobotsTxt

    return RobotsTxt(
        fetcher, agent=user_agent(spider), limits=spider.limits or Limits(), cache=cache, patience=patience
    )


def open_gate(spider: "Spider", pools: Collection[str] | Callable[[], Collection[str] | None] | None = None) -> "Gate":
    """`pools`: names of the proxy pools that exist, now or at each time; None: not known here."""
    from trotline.frontier.gate import Gate
    from trotline.rules.traps import TrapDetector, TrapRules
    from trotline.rules.urls import UrlRules

    return Gate(
        spider.scope,
        spider.urls or UrlRules(),
        TrapDetector(spider.traps or TrapRules()),
        site=spider.name,
        retries=spider.retries,
        pool=spider.pool,
        pools=pools if pools is None or callable(pools) else lambda: pools,
        limits=spider.limits or Limits(),
    )


def check_tracer(url: str) -> None:
    """SettingsError if its library is missing: the worker processes that need it would end one after another."""
    if url and find_spec("opentelemetry") is None:
        raise SettingsError(
            "traces need the package opentelemetry-sdk",
            hint="Install it, in your clone of Trotline: pip install '.[otel]'",
        )


def open_tracer(url: str, sample: float, **resource: str) -> "Tracer | None":
    """For OpenTelemetry; None if no collector is set."""
    if not url:
        return None
    from importlib.metadata import version

    from trotline.adapters.otel.tracer import OtelTracer

    return OtelTracer(url, sample, {"service.version": version("trotline"), **resource}, open_chance())


def evidence_folder(frontier_url: str) -> Path | None:
    """Next to the frontier's file, or of the worker's own machine; None if the frontier is in memory."""
    if not is_local(frontier_url):
        return _LOCAL / "evidence"
    path = local_path(frontier_url)
    return Path(path).parent / "evidence" if path else None


def open_evidence(frontier_url: str) -> "EvidenceFolder | None":
    from trotline.adapters.files.crash_pages import EvidenceFolder

    folder = evidence_folder(frontier_url)
    return None if folder is None else EvidenceFolder(folder)


def evidence_path(frontier_url: str) -> str:
    """The path of a kept body, with {} for its name."""
    from trotline.adapters.files.crash_pages import file_name

    folder = evidence_folder(frontier_url)
    return "" if folder is None else str(folder).replace("{", "{{").replace("}", "}}") + "/" + file_name("{}")


def open_chance() -> random.Random:
    return random.Random()  # noqa: S311 - spreads waiting times, guards nothing
