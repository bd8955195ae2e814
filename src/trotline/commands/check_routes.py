"""The routes that a worker takes: does the spider have them, with queues of their own?"""

from collections.abc import Sequence

from trotline.errors import SettingsError
from trotline.spider.spider import Spider


def check_routes(spider: Spider, routes: Sequence[str]) -> None:
    """Raises unless a worker can take the tasks of these routes only."""
    for name in routes:
        spider.route(name)
    if routes and not spider.rules.queues:
        raise SettingsError(
            f"spider {spider.name!r} has one queue for all its routes, so a worker cannot take some of them only",
            hint=f'Write Spider("{spider.name}", queue_per_route=True), and start a new job.',
        )
