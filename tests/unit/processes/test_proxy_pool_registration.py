"""The proxy pools of a worker follow their file."""

import asyncio
from pathlib import Path

import pytest

from trotline.config import backends
from trotline.config.proxy_pools import load
from trotline.model.proxy_pool import account_id
from trotline.ports.pool_members import Ways
from trotline.processes import proxy_pool_registration
from trotline.processes.proxy_pool_registration import PoolKeeper

HOME = '[pools.home]\nregion = "eu"\nproxies = ["http://127.0.0.1:9"]\n'
ISP = '[pools.isp]\nregion = "us"\nproxies = ["http://127.0.0.2:9"]\n'


def replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


async def served(keeper: PoolKeeper, wanted: tuple[str, ...]) -> None:
    async with asyncio.timeout(10):
        while keeper.pools != wanted:  # noqa: ASYNC110 - the keeper has no event
            await asyncio.sleep(0.01)


async def test_a_pool_that_is_added_to_the_file_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_pool_registration, "LOOK", 0.01)
    file = tmp_path / "proxies.toml"
    file.write_text(HOME)
    frontier = await backends.open_proxy_pools(f"sqlite:{tmp_path}/frontier.db")
    all_of_it = PoolKeeper(load(str(file)), frontier)
    of_region = PoolKeeper(load(str(file)), frontier, regions=("eu",))
    keeping = [asyncio.create_task(keeper.keep()) for keeper in (all_of_it, of_region)]
    try:
        assert (all_of_it.pools, of_region.pools) == (("", "home"), ("home",))
        replace(file, HOME + ISP)
        await served(all_of_it, ("", "home", "isp"))
        replace(file, ISP)
        await served(all_of_it, ("", "isp"))
        assert of_region.pools == ("home",), "its region is gone from the file: it waits for it"
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        await frontier.close()


async def test_a_file_that_cannot_be_read_is_reported_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_pool_registration, "LOOK", 0.01)
    file = tmp_path / "proxies.toml"
    file.write_text(HOME)
    frontier = await backends.open_proxy_pools(f"sqlite:{tmp_path}/frontier.db")
    keeper = PoolKeeper(load(str(file)), frontier)
    keeping = asyncio.create_task(keeper.keep())
    try:
        assert keeper.trouble == ""
        replace(file, HOME + "[pools.isp\n")
        async with asyncio.timeout(10):
            while not keeper.trouble:  # noqa: ASYNC110 - the keeper has no event
                await asyncio.sleep(0.01)
        assert "proxies.toml" in keeper.trouble
        assert keeper.pools == ("", "home"), "the last good one is in use"
        replace(file, HOME + ISP)
        await served(keeper, ("", "home", "isp"))
        assert keeper.trouble == ""
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await frontier.close()


ACCOUNTS = '[accounts.buyers]\nproxies = "home"\n[accounts.buyers.logins]\nanna = { password = "first-one" }\n'
GUESTS = '[accounts.guests]\nproxies = "direct"\nslots = 2\n'


async def test_accounts_are_registered_and_a_new_password_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_pool_registration, "LOOK", 0.01)
    file = tmp_path / "proxies.toml"
    file.write_text(HOME + ACCOUNTS)
    file.chmod(0o600)
    frontier = await backends.open_proxy_pools(f"sqlite:{tmp_path}/frontier.db")
    keeper: Ways = PoolKeeper(load(str(file)), frontier)
    assert isinstance(keeper, PoolKeeper)
    await keeper.register()
    keeping = asyncio.create_task(keeper.keep())
    try:
        assert keeper.pools == ("", "home", "@buyers")
        assert [(pool.name, pool.members) for pool in await frontier.pools()] == [("@buyers", 1), ("home", 1)]
        assert (keeper.proxied, keeper.size("x via home"), keeper.size("x via none"), keeper.size("x")) == (
            True,
            1,
            0,
            0,
        )
        member = account_id("@buyers/anna")
        for lane in ("shop.example via @buyers", "shop.example via @buyers/anna"):
            anna = keeper.account(lane, member)
            assert anna is not None
            assert (anna.password.reveal(), keeper.size(lane)) == ("first-one", 1)
            assert keeper.way(lane, member) is None
        assert keeper.account("shop.example via home", member) is None
        way = keeper.proxy_of(anna, 0)
        assert way is not None
        assert way.public == "127.0.0.1:9"
        replace(file, HOME + ACCOUNTS.replace("first-one", "second-one") + GUESTS)
        await served(keeper, ("", "home", "@buyers", "@guests"))
        changed = keeper.account("shop.example via @buyers", member)
        assert changed is not None
        assert changed.password.reveal() == "second-one"
        replace(file, GUESTS)
        await served(keeper, ("", "@guests"))
        assert not keeper.proxied
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await frontier.close()
