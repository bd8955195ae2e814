"""A part of the frontier's contract, for a second row of code that another row holds to all of it (decision 115).

Every call of the port, and random histories of calls with pools, chains and accounts. With SOAK=1: all promises.
"""

import os

import pytest

from trotline.testing.frontier_contract import FrontierContract
from trotline.testing.frontier_contract.account_histories import AccountHistories
from trotline.testing.frontier_contract.budgeting import BudgetPromises
from trotline.testing.frontier_contract.chain_histories import ChainHistories
from trotline.testing.frontier_contract.counting import CountPromises
from trotline.testing.frontier_contract.in_flight import InFlightPromises
from trotline.testing.frontier_contract.leasing import LeasePromises
from trotline.testing.frontier_contract.noting import NotePromises
from trotline.testing.frontier_contract.pool_listing import PoolListPromises
from trotline.testing.frontier_contract.proxy_histories import ProxyHistories
from trotline.testing.frontier_contract.putting import PutPromises
from trotline.testing.frontier_contract.rejecting import RejectPromises
from trotline.testing.frontier_contract.settling import SettlePromises

SOAK = bool(os.environ.get("SOAK"))


class Calls(PutPromises, LeasePromises, SettlePromises, CountPromises, NotePromises):
    """Every call of workers, and views."""

    pytestmark = pytest.mark.asyncio


class CallsAndHistories(
    Calls,
    RejectPromises,
    BudgetPromises,
    InFlightPromises,
    PoolListPromises,
    ProxyHistories,
    ChainHistories,
    AccountHistories,
):
    """And what else is stored, by random histories."""


WORKER_CALLS: type = FrontierContract if SOAK else Calls
"""Where what lies between us and the store is another, such as a pooler."""
BRIEF_CONTRACT: type = FrontierContract if SOAK else CallsAndHistories
"""Where the store is another version or another form of the same."""
