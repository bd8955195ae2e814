"""Nothing goes out directly by mistake: a handler that ignores `meta["proxy"]` gets no request with a pool."""

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import NotSupported
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from trotline.bridges.scrapy.download_handlers import DownloadHandlers
from trotline.bridges.scrapy.pool_middlewares import GoOut
from trotline.bridges.scrapy.pools import Pools
from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import WayOut
from trotline.errors import SettingsError
from trotline.model.lease import Lease
from trotline.model.proxy import Proxy, ProxyScheme
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.rules.tagged_json import NotData

PLAYWRIGHT = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
OTHER = "project.handlers.Curl"
PAGE = "https://shop.example/"


class Handler:
    """Given as a class, as Scrapy allows."""


def settings(path: Any = None, vouched: tuple[str, ...] = ()) -> dict[str, Any]:
    own = {"http": path, "https": path} if path else {}
    return {"DOWNLOAD_HANDLERS": own, "TROTLINE_PROXY_HANDLERS": list(vouched)}


def handlers(path: Any = None, *vouched: str) -> DownloadHandlers:
    return DownloadHandlers.of(Settings(settings(path, vouched)))


def pools(folder: Path, known: DownloadHandlers, pool: str = "") -> Pools:
    file = folder / "proxies.txt"
    file.write_text("http://192.0.2.1:3128\n")
    file.chmod(0o600)
    return Pools(str(file), Spider("shop"), pool, known)


def test_handlers_of_scrapy_use_http_proxies() -> None:
    assert handlers().schemes == {ProxyScheme.HTTP}
    assert handlers(PLAYWRIGHT).schemes == {ProxyScheme.HTTP}
    assert handlers().refusal(Request(PAGE)) == handlers(PLAYWRIGHT).refusal(Request(PAGE)) == ""


def test_what_is_not_sent_needs_no_proxy_and_ftp_has_none() -> None:
    assert handlers().refusal(Request("data:,hello")) == ""
    assert "ftp.FTPDownloadHandler is not known to use" in handlers().refusal(Request("ftp://shop.example/a"))


@pytest.mark.parametrize("path", [OTHER, Handler, "scrapy.core.downloader.handlers.http2.H2DownloadHandler"])
def test_a_handler_that_is_not_known_is_refused_with_the_setting_that_allows_it(path: Any) -> None:
    name = path if isinstance(path, str) else f"{__name__}.Handler"
    assert handlers(path).schemes == frozenset()
    assert f'TROTLINE_PROXY_HANDLERS = ["{name}"]' in handlers(path).refusal(Request(PAGE))
    assert handlers(path, name).refusal(Request(PAGE)) == ""
    assert handlers(path, name).schemes == frozenset(ProxyScheme)


@pytest.mark.parametrize("vouched", [(), (PLAYWRIGHT,)])
def test_a_page_of_a_browser_is_refused_whatever_the_project_says(vouched: tuple[str, ...]) -> None:
    why = handlers(PLAYWRIGHT, *vouched).refusal(Request(PAGE, meta={"playwright": True}))
    assert "PLAYWRIGHT_LAUNCH_OPTIONS" in why
    assert "TROTLINE_PROXY_HANDLERS" in why


def test_a_project_whose_handler_is_not_known_does_not_start_with_a_pool(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        pools(tmp_path, handlers(OTHER))
    assert OTHER in str(error.value.hint)
    pools(tmp_path, handlers(OTHER), "direct")


def test_a_request_that_would_go_out_directly_is_not_stored(tmp_path: Path) -> None:
    known = pools(tmp_path, handlers(PLAYWRIGHT))
    with pytest.raises(NotData, match="scrapy-playwright does not use the proxies of a pool"):
        known.name_of(Request(PAGE, meta={"playwright": True}))
    assert known.name_of(Request(PAGE)) == "default"
    assert known.name_of(Request(PAGE, meta={"playwright": True, "trotline_pool": "direct"})) == "direct"
    direct = pools(tmp_path, handlers(OTHER), "direct")
    with pytest.raises(NotData, match="is not known to use"):
        direct.name_of(Request(PAGE, meta={"trotline_pool": "default"}))


def gate(path: Any, proxy: Proxy) -> tuple[GoOut, Visit]:
    out = GoOut(get_crawler(Spider, settings(path)))
    task = Task(url=PAGE, route="parse", lane="shop.example via dc", fingerprint=1, pool="dc")
    visit = Visit(Lease(task, 1, 0.0, 1.0, 0.0, 0.0, member=7), Request(PAGE, meta={"playwright": True}), WayOut(proxy))
    out.visits = {visit.request: visit}
    out.proxied = True
    return out, visit


@pytest.mark.parametrize("path", [PLAYWRIGHT, OTHER])
def test_the_last_gate_lets_nothing_out_and_sets_no_login(path: str) -> None:
    """Also what an earlier version has stored, and what a middleware has made of it."""
    out, visit = gate(path, Proxy(host="192.0.2.1", port=3128, user="anna", password="pa55"))  # noqa: S106 - a test
    with pytest.raises(NotSupported, match="directly"):
        out.process_request(visit.request)
    assert "proxy" not in visit.request.meta
    assert not visit.request.headers
    assert visit.settlement().member is MemberResult.UNUSED
    with pytest.raises(NotSupported, match="directly"):
        out.process_request(Request("https://shop.example/robots.txt", meta={"playwright": True}))


def test_a_handler_that_is_known_gets_the_proxy() -> None:
    out, visit = gate(None, Proxy(host="192.0.2.1", port=3128))
    out.process_request(visit.request)
    assert visit.request.meta["proxy"] == "http://192.0.2.1:3128"
    assert visit.way is not None and visit.way.used
