"""Accounts with Scrapy: one holder at a time over all processes, and sessions that travel, also to our own workers."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.account_site import PASSWORD, AccountSite, secrets_in
from tests.e2e.account_soak import SPIDER
from tests.e2e.running import call, rows_of
from tests.e2e.scrapy_running import Run, crawl

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow("starts Scrapy processes")]

ACCOUNTS = ("a0", "a1", "a2")


def pools(folder: Path) -> None:
    logins = "\n".join(f'{name} = {{ user = "{name}@shop.test", password = "env:P_{name}" }}' for name in ACCOUNTS)
    (folder / "proxies.toml").write_text(
        f'[accounts.members]\nproxies = "direct"\n[accounts.members.logins]\n{logins}\n'
    )


async def members(folder: Path, site: AccountSite, *, pages: int, processes: int = 1, **given: Any) -> Run:
    env = {f"P_{name}": PASSWORD.format(name) for name in ACCOUNTS} | given.pop("passwords", {})
    return await crawl(
        folder / "crawl", ["members"], f"sqlite:{folder}/frontier.db", url=site.base, processes=processes,
        env={**env, "PAGES": str(pages)}, TROTLINE_PROXIES=str(folder / "proxies.toml"), **given,
    )  # fmt: skip


def found(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.items["members"]]


async def test_two_processes_share_the_accounts_and_each_logs_in_once(tmp_path: Path) -> None:
    pools(tmp_path)
    async with AccountSite(slow=0.01) as site:
        run = await members(tmp_path, site, pages=60, processes=2)

        rows = found(run)
        assert len({row["url"] for row in rows}) == len(rows) == 60, run.log
        assert all(row["who"] == row["account"] for row in rows)
        assert {row["who"] for row in rows} == set(ACCOUNTS)
        assert site.overlaps == []
        assert site.logins == dict.fromkeys(ACCOUNTS, 1), "one login each, for both processes"

        # The sessions are there for our own workers, too.
        (tmp_path / "members.py").write_text(SPIDER)
        env = {f"P_{name}": PASSWORD.format(name) for name in ACCOUNTS}
        env |= {
            "MEMBERS": site.base,
            "PAGES": "30",
            "TROTLINE_PROXIES": "proxies.toml",
            "TROTLINE_ALLOW_PRIVATE": "yes",
        }
        ended = await call(
            tmp_path, "run", "members.py:members", "--sink", "rows.jsonl", "--frontier",
            f"sqlite:{tmp_path}/frontier.db", "--fresh", env=env,
        )  # fmt: skip
        assert ended.code == 0, ended
        assert len(rows_of(tmp_path / "rows.jsonl")) == 30
        assert site.logins == dict.fromkeys(ACCOUNTS, 1)
    kept = _kept(tmp_path) + run.log.encode()
    assert secrets_in(kept.decode("latin-1")) == []


def _kept(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("frontier.db*"))


async def test_sessions_that_end_are_renewed_and_no_page_of_a_stranger_is_an_item(tmp_path: Path) -> None:
    pools(tmp_path)
    async with AccountSite(slow=0.0, pages_of_a_session=7) as site:
        run = await members(tmp_path, site, pages=40)

        assert sorted(row["who"] is not None for row in found(run)) == [True] * 40, run.log
        assert site.strangers > 0, "sessions did end"
        assert site.overlaps == []


async def test_a_redirect_to_the_login_page_is_no_page(tmp_path: Path) -> None:
    pools(tmp_path)
    async with AccountSite(slow=0.0, pages_of_a_session=7, redirects=True) as site:
        run = await members(tmp_path, site, pages=40)

        assert len(found(run)) == 40, run.log
        assert {row["who"] for row in found(run)} <= set(ACCOUNTS)


async def test_an_account_whose_login_is_rejected_rests_and_the_others_go_on(tmp_path: Path) -> None:
    pools(tmp_path)
    async with AccountSite(slow=0.0) as site:
        run = await members(tmp_path, site, pages=30, passwords={"P_a1": "wrong-password"})

        assert {row["who"] for row in found(run)} == {"a0", "a2"}, run.log
        assert len(found(run)) == 30
        assert run.log.count("account.rejected @members/a1") == 1
        assert "wrong-password" not in run.log
