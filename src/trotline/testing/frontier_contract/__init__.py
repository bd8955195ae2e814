"""The promises of the Frontier port as tests that any backend can inherit.

    class TestMyFrontier(FrontierContract):
        @pytest_asyncio.fixture
        async def bench(self, tmp_path):
            bench = MyBench(tmp_path)
            yield bench
            await bench.close()

What a backend cannot give stands in `gaps`, and shows up as a skip with its reason; what it gives with a limit, in
`marks`.
"""

from collections.abc import Mapping
from typing import ClassVar

import pytest

from trotline.testing.frontier_contract.account_histories import AccountHistories
from trotline.testing.frontier_contract.accounts import AccountPromises
from trotline.testing.frontier_contract.bench import BRISK, Bench, Client, client, steady, task, tasks
from trotline.testing.frontier_contract.budgeting import BudgetPromises
from trotline.testing.frontier_contract.chain_failing import ChainFailurePromises
from trotline.testing.frontier_contract.chain_histories import ChainHistories
from trotline.testing.frontier_contract.chain_watching import ChainWatchPromises
from trotline.testing.frontier_contract.chaining import ChainPromises
from trotline.testing.frontier_contract.counting import CountPromises
from trotline.testing.frontier_contract.failing import FailPromises
from trotline.testing.frontier_contract.in_flight import InFlightPromises
from trotline.testing.frontier_contract.leasing import LeasePromises
from trotline.testing.frontier_contract.living import LivePromises
from trotline.testing.frontier_contract.noting import NotePromises
from trotline.testing.frontier_contract.pacing import PacePromises
from trotline.testing.frontier_contract.pool_listing import PoolListPromises
from trotline.testing.frontier_contract.proxy_histories import ProxyHistories
from trotline.testing.frontier_contract.proxying import ProxyPromises
from trotline.testing.frontier_contract.putting import PutPromises
from trotline.testing.frontier_contract.quarantining import QuarantinePromises
from trotline.testing.frontier_contract.rejecting import RejectPromises
from trotline.testing.frontier_contract.repacing import RepacePromises
from trotline.testing.frontier_contract.repooling import RepoolPromises
from trotline.testing.frontier_contract.rotating import RotationPromises
from trotline.testing.frontier_contract.routing import RoutePromises
from trotline.testing.frontier_contract.settling import SettlePromises
from trotline.testing.frontier_contract.sharing import HeedPromises, SharePromises
from trotline.testing.frontier_contract.steering import SteerPromises
from trotline.testing.frontier_contract.throttling import ThrottlePromises
from trotline.testing.frontier_contract.watching import WatchPromises

__all__ = ["BRISK", "Bench", "Client", "FrontierContract", "client", "steady", "task", "tasks"]


class FrontierContract(
    PutPromises,
    LeasePromises,
    LivePromises,
    SettlePromises,
    RejectPromises,
    CountPromises,
    PacePromises,
    RepacePromises,
    SharePromises,
    FailPromises,
    ThrottlePromises,
    HeedPromises,
    SteerPromises,
    WatchPromises,
    InFlightPromises,
    NotePromises,
    BudgetPromises,
    RoutePromises,
    ProxyPromises,
    PoolListPromises,
    QuarantinePromises,
    RotationPromises,
    RepoolPromises,
    ProxyHistories,
    ChainPromises,
    ChainFailurePromises,
    ChainWatchPromises,
    ChainHistories,
    AccountPromises,
    AccountHistories,
):
    """F1 to F21, N1 to N4, R1 to R11, C1 to C7 and A1 to A6, at least one test each.

    A subclass provides the fixture `bench`.
    """

    pytestmark = pytest.mark.asyncio

    gaps: ClassVar[Mapping[str, str]] = {}
    """What this backend cannot give: a promise ("f13") or the name of a test without "test_", and why."""

    marks: ClassVar[Mapping[str, str]] = {}
    """What this backend gives with a limit: a promise ("f4"), and the limit. Its tests run all the same."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, listed in (("gaps", cls.gaps), ("marks", cls.marks)):
            for gap in listed:
                if not any(_covers(gap, test) for test in dir(cls)):
                    raise TypeError(
                        f"{cls.__name__}.{name} names {gap!r}, but no test is called that; is it spelled right?"
                    )

    @pytest.fixture(autouse=True)
    def _skip_gaps(self, request: pytest.FixtureRequest) -> None:
        for gap, why in self.gaps.items():
            if _covers(gap, request.node.originalname):
                pytest.skip(why)


def _covers(gap: str, test: str) -> bool:
    name = test.removeprefix("test_")
    return name != test and (name == gap or name.startswith(f"{gap}_"))
