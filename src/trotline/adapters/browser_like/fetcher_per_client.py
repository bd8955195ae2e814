"""The fetcher of a spider with several clients: each task goes through its own."""

from collections.abc import Mapping, Sequence

from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher, Visit
from trotline.model.account import StoredCookie
from trotline.model.client_kind import Client
from trotline.model.proxy import Way
from trotline.model.task import Task


class FetcherByClient:
    """Implements `ports.fetcher.Fetcher`."""

    def __init__(
        self, plain: PooledFetcher, browser: BrowserWays, default: Client, of_routes: Mapping[str, Client]
    ) -> None:
        """`default`: for robots.txt, sitemaps and routes that are not in `of_routes`."""
        self._plain = plain
        self._browser = browser
        self._default = default
        self._of_routes = dict(of_routes)

    def fetch(self, task: Task, way: Way | None = None) -> Visit:
        return self._of(task).fetch(task, way)

    def fetch_start(self, task: Task, most: int, way: Way | None = None) -> Visit:
        return self._of(task).fetch_start(task, most, way)

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        self._plain.restore_cookies(session, cookies)

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        return self._plain.cookies(session)

    async def close(self) -> None:
        await self._browser.close()
        await self._plain.close()

    def _of(self, task: Task) -> PooledFetcher:
        client = task.client or self._of_routes.get(task.route, self._default)
        return self._browser if client == Client.BROWSER else self._plain
