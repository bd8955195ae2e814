"""Every table of pools in the docs is one that the program accepts; so is the example's."""

import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import REFERENCE, ROOT, Block, all_blocks
from trotline.config import account_table, pool_table, pool_weights
from trotline.config.proxy_pools import load
from trotline.rules.proxy_logins import PROVIDERS

BLOCKS = [block for block in all_blocks("toml") if "[pools." in block.text]
ACCOUNTS = [block for block in BLOCKS if "[accounts." in block.text]
WEIGHTS = [block for block in BLOCKS if "a1b2c3d4e5f6 = " in block.text]


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISP_USER", "ISP_PASSWORD", "GATE_PASSWORD", "API_KEY", "ANNA_PASSWORD", "BERT_TOTP"):
        monkeypatch.setenv(name, "s3cret-77")
    for number in (1, 2, 3):
        monkeypatch.setenv(f"PROXY_{number}", f"http://anna:s3cret-77@127.0.0.1:{number}")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page.name}-{block.text[:30]}")
def test_a_table_in_the_docs_is_accepted(block: Block) -> None:
    pools = tomllib.loads(block.text)["pools"]
    if block in WEIGHTS:
        assert pool_weights.parse("weights.toml", block.text).keys() == pools.keys()
        return
    assert [pool_table.read("proxies.toml", name, table).name for name, table in pools.items()] == list(pools)


@pytest.mark.parametrize("block", ACCOUNTS, ids=lambda block: block.page.name)
def test_accounts_in_the_docs_are_accepted(block: Block, tmp_path: Path) -> None:
    secret = tmp_path / "bert"
    secret.write_text("s3cret-77")
    secret.chmod(0o600)
    whole = tomllib.loads(block.text.replace("/run/secrets/bert", str(secret)))
    pools = {name: pool_table.read("proxies.toml", name, table) for name, table in whole["pools"].items()}
    found = account_table.read_all("proxies.toml", whole["accounts"], pools, 0.0)
    assert [table.name for table in found] == [f"@{name}" for name in whole["accounts"]]


def test_tables_are_found_at_all() -> None:
    assert {block.page.name for block in BLOCKS} == {"README.md", "proxies.md", "accounts.md"}
    assert len(ACCOUNTS) == 2
    assert len(BLOCKS) >= 4
    assert len(WEIGHTS) == 1


def test_every_row_of_provider_styles_is_accepted() -> None:
    page = (ROOT / "docs" / "how-to" / "proxies.md").read_text()
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and ("`user = " in line or "`password = " in line)
    ]
    assert len(rows) == 3
    for row in rows:
        table = {"endpoint": "http://gate.example:7777", "user": "anna", "country": "us"}
        table |= tomllib.loads(row.split("`")[1])
        assert pool_table.read("proxies.toml", "home", table).gateway is not None


def test_every_provider_whose_login_is_known_is_named() -> None:
    page = (REFERENCE / "proxies.md").read_text()
    assert [name for name in PROVIDERS if f"`{name}`" not in page] == []


def test_the_example_has_the_pools_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    book = load(str(ROOT / "examples" / "proxies.toml"))
    assert [(line.name, line.size) for line in book.lines()] == [("datacenter", 2), ("residential", 1)]
    assert book.notes == ()
    assert Path(ROOT / "examples" / "proxied.py").is_file()
