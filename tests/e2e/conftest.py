"""Real sites for end-to-end tests: the demo shop, and a documentation site behind nginx."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from tests.e2e.closure import closure as closure_of
from tests.e2e.fleet import Fleet, OneServer, Servers, one_server, servers
from tests.e2e.running import end_all

from trotline.testing.rabbitmq_server import RabbitServer, rabbitmq
from trotline.testing.servers import Nginx, missing, nginx
from trotline.testing.shop import DemoShop
from trotline.testing.sqs_server import SqsServer, sqs

PYTHON_DOCS = Path("/usr/share/doc/python3.11/html")


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def shop() -> Iterator[DemoShop]:
    """A fresh demo shop with 120 products, on a free port."""
    with DemoShop.in_thread(products=120, seed=7) as opened:
        yield opened


@pytest.fixture(scope="session")
def docs_site() -> Iterator[Nginx]:
    """The Python documentation of Debian's python3.11-doc behind a real nginx."""
    if not (PYTHON_DOCS / "index.html").exists():
        missing(f"{PYTHON_DOCS} is not there. Try: apt-get install python3.11-doc")
    with nginx(PYTHON_DOCS, access_log=True) as site:
        yield site


@pytest.fixture(scope="session")
def closure() -> Callable[[str], frozenset[str]]:
    """`closure(url)`: every HTML page of the site under same-host scope, found without Trotline's code.

    Answers are kept for the session: the documentation takes a while, and does not change.
    """
    return cache(closure_of)


@pytest.fixture(scope="session")
def both() -> Iterator[Servers]:
    """A Redis and a PostgreSQL for all tests of a process. Who stops one, starts it again."""
    with servers() as opened:
        yield opened


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitServer]:
    """A RabbitMQ for all tests of a process; they are in the group "fleet rabbitmq"."""
    with rabbitmq() as server:
        yield server


@pytest.fixture(scope="session")
def queues() -> Iterator[SqsServer]:
    """A server for SQS."""
    with sqs() as server:
        yield server


@pytest.fixture(scope="module")
def database() -> Iterator[OneServer]:
    """A PostgreSQL of the module's own, for tasks and rows."""
    with one_server() as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_database() -> Iterator[OneServer]:
    """For tests that leave it running, of all modules."""
    with one_server() as opened:
        yield opened


PLACES = ("files", "servers", "postgresql")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test of a fleet runs on servers, and on one of the two other places; on all of them with SOAK=1, and where
    tests are chosen by name."""
    if os.environ.get("SOAK") or config.option.keyword or any("::" in one for one in config.args):
        return
    left_out = [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_left_out(item)]


def _is_left_out(item: pytest.Item) -> bool:
    place = getattr(item, "callspec", None) and item.callspec.params.get("fleet")
    return place in (PLACES[0], PLACES[2]) and place != PLACES[2 * (crc32(item.originalname.encode()) % 2)]


@pytest.fixture(params=PLACES)
async def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Fleet]:
    if request.param == "files":
        opened = Fleet(tmp_path, f"sqlite:{tmp_path}/frontier.db", f"sqlite:{tmp_path}/rows.db")
    elif request.param == "postgresql":
        opened = Fleet(tmp_path, *request.getfixturevalue("shared_database").places())
    else:
        frontier, sink = request.getfixturevalue("both").places()
        opened = Fleet(tmp_path, frontier, sink)
    yield opened
    await opened.end()
