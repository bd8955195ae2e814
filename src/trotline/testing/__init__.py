"""For tests of spiders and adapters: `visit()`, the contract suites, the demo shop, the torture
server, the DNS server, a forward proxy. Imported when first used."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trotline.testing.archive_contract import ArchiveContract
    from trotline.testing.ban_site import BanRules, BanSite
    from trotline.testing.dns import DnsServer
    from trotline.testing.echo import EchoServer
    from trotline.testing.frontier_contract import FrontierContract
    from trotline.testing.jobs_contract import JobsContract
    from trotline.testing.leadership_contract import LeadershipContract
    from trotline.testing.ledger_contract import LedgerContract
    from trotline.testing.merge_contract import MergeStoreContract
    from trotline.testing.proxy import ForwardProxy
    from trotline.testing.shop import DemoShop
    from trotline.testing.sink_contract import SinkContract
    from trotline.testing.torture import TortureServer
    from trotline.testing.visiting import visit

_HOMES = {
    "ArchiveContract": "archive_contract",
    "BanRules": "ban_site",
    "BanSite": "ban_site",
    "DemoShop": "shop",
    "DnsServer": "dns",
    "EchoServer": "echo",
    "ForwardProxy": "proxy",
    "FrontierContract": "frontier_contract",
    "JobsContract": "jobs_contract",
    "LeadershipContract": "leadership_contract",
    "LedgerContract": "ledger_contract",
    "MergeStoreContract": "merge_contract",
    "SinkContract": "sink_contract",
    "TortureServer": "torture",
    "visit": "visiting",
}

_SUITES = (
    "archive_contract",
    "frontier_contract",
    "frontier_hands",
    "frontier_machine",
    "frontier_model",
    "frontier_operators",
    "jobs_contract",
    "leadership_contract",
    "ledger_contract",
    "merge_contract",
    "sink_contract",
)
if pytest := sys.modules.get("pytest"):
    # Here, because this runs before any suite can be imported. Without it a failing assert shows no values: pytest
    # rewrites the asserts of test files only.
    pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in _SUITES))

__all__ = [
    "ArchiveContract",
    "BanRules",
    "BanSite",
    "DemoShop",
    "DnsServer",
    "EchoServer",
    "ForwardProxy",
    "FrontierContract",
    "JobsContract",
    "LeadershipContract",
    "LedgerContract",
    "MergeStoreContract",
    "SinkContract",
    "TortureServer",
    "visit",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"trotline.testing.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
