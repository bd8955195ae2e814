"""Pages behind a login, with several accounts: `trotline run` on one machine, and what it leaves behind."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.e2e.account_site import PASSWORD, AccountSite, secrets_in
from tests.e2e.account_soak import SPIDER
from tests.e2e.running import Ended, call, rows_of

from trotline.testing.proxy import ForwardProxy

ACCOUNTS = ("a0", "a1", "a2")
SETTINGS = {"TROTLINE_PROXIES": "proxies.toml", "TROTLINE_ALLOW_PRIVATE": "yes"}


def pools(folder: Path, *accounts: str, proxies: str = '"direct"', more: str = "") -> None:
    logins = "\n".join(f'{name} = {{ user = "{name}@shop.test", password = "env:P_{name}" }}' for name in accounts)
    text = f"[accounts.members]\nproxies = {proxies}\n{more}\n[accounts.members.logins]\n{logins}\n"
    (folder / "proxies.toml").write_text(text)


async def run(folder: Path, site: AccountSite, *words: str, pages: int = 30, **passwords: str) -> Ended:
    (folder / "members.py").write_text(SPIDER)
    known = {f"P_{name}": PASSWORD.format(name) for name in ACCOUNTS} | passwords
    env = {
        "MEMBERS": site.base,
        "PAGES": str(pages),
        "TROTLINE_PROXIES": "proxies.toml",
        "TROTLINE_ALLOW_PRIVATE": "yes",
    }
    return await call(folder, "run", "members.py", "--sink", "rows.jsonl", *words, env=env | known)


def by_whom(folder: Path) -> dict[str, int]:
    rows = rows_of(folder / "rows.jsonl")
    assert all(row["who"] == row["account"] for row in rows)
    return {name: sum(1 for row in rows if row["who"] == name) for name in {row["who"] for row in rows}}


async def test_pages_are_read_logged_in_and_accounts_take_turns(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite(slow=0.01) as site:
        ended = await run(tmp_path, site, "--processes", "2", pages=60)

    assert ended.code == 0, ended
    whose = by_whom(tmp_path)
    assert sum(whose.values()) == 60
    assert all(15 <= count <= 25 for count in whose.values()), whose
    assert site.overlaps == []
    assert site.logins == dict.fromkeys(ACCOUNTS, 1), "one login each, for both processes"


async def test_a_session_is_kept_for_the_next_job(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite(slow=0.0) as site:
        assert (await run(tmp_path, site)).code == 0
        ended = await run(tmp_path, site, "--fresh", pages=35)

    assert ended.code == 0, ended
    assert site.logins == dict.fromkeys(ACCOUNTS, 1)


async def test_sessions_that_end_are_renewed_and_no_page_of_a_stranger_is_stored(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite(slow=0.0, pages_of_a_session=7) as site:
        ended = await run(tmp_path, site, pages=60)

    assert ended.code == 0, ended
    assert sum(by_whom(tmp_path).values()) == 60
    assert site.strangers > 0, "sessions did end"
    assert all(count >= 2 for count in site.logins.values())


async def test_pages_behind_a_redirect_to_the_login_are_visited_again_and_not_taken_for_others(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite(slow=0.0, pages_of_a_session=7, redirects=True) as site:
        ended = await run(tmp_path, site, pages=60)

    assert ended.code == 0, ended
    assert {row["url"] for row in rows_of(tmp_path / "rows.jsonl")} == {f"{site.base}/p/{n}" for n in range(1, 61)}
    assert sum(by_whom(tmp_path).values()) == 60
    assert site.strangers > 0


async def test_an_account_with_a_wrong_password_rests_and_the_others_go_on(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite(slow=0.0) as site:
        ended = await run(tmp_path, site, P_a1="canary-wrong")

    assert ended.code == 0, ended
    assert set(by_whom(tmp_path)) == {"a0", "a2"}
    assert "login rejected" in ended.out + ended.err
    assert "a1" in ended.out + ended.err


async def test_an_account_that_is_named_visits_its_pages(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    spider = SPIDER.replace('pool="@members", limits', 'pool="@members/a2", limits')
    async with AccountSite(slow=0.0) as site:
        (tmp_path / "one.py").write_text(spider)
        env = {"MEMBERS": site.base, "PAGES": "10", **SETTINGS}
        env |= {f"P_{name}": PASSWORD.format(name) for name in ACCOUNTS}
        ended = await call(tmp_path, "run", "one.py", "--sink", "rows.jsonl", env=env)

    assert ended.code == 0, ended
    assert by_whom(tmp_path) == {"a2": 10}


async def test_each_account_keeps_its_proxy(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS, proxies='"home"')
    async with AccountSite(slow=0.0) as site, AsyncExitStack() as stack:
        exits = [f"127.0.0.{number}" for number in range(121, 126)]
        proxies = [await stack.enter_async_context(ForwardProxy(leaves_from=address)) for address in exits]
        with (tmp_path / "proxies.toml").open("a") as file:
            file.write("\n[pools.home]\nproxies = [" + ", ".join(f'"{proxy.url}"' for proxy in proxies) + "]\n")
        ended = await run(tmp_path, site, pages=45)

    assert ended.code == 0, ended
    assert sum(by_whom(tmp_path).values()) == 45
    assert site.addresses, "the site sees who comes"
    assert all(len(addresses) == 1 for addresses in site.addresses.values()), site.addresses


@pytest.mark.parametrize("frontier", ["sqlite:f.db"])
async def test_passwords_are_nowhere_but_at_the_site(tmp_path: Path, frontier: str) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite(slow=0.0) as site:
        ended = await run(tmp_path, site, "--frontier", frontier, "-v", P_a1="canary-wrong")

    assert secrets_in(ended.out + ended.err) == []
    for file in list(tmp_path.rglob("*")):  # noqa: ASYNC240 - the commands have ended
        if file.is_file():
            assert secrets_in(file.read_bytes().decode("latin-1")) == [], file


async def test_try_logs_in_with_a_named_account(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    (tmp_path / "members.py").write_text(SPIDER)
    async with AccountSite(slow=0.0) as site:
        env = {"MEMBERS": site.base, "PAGES": "10", **SETTINGS}
        env |= {f"P_{name}": PASSWORD.format(name) for name in ACCOUNTS} | {"P_a1": "canary-wrong"}
        read = await call(tmp_path, "try", "members.py", "--pool", "@members/a2", env=env)
        rejected = await call(tmp_path, "try", "members.py", "--pool", "@members/a1", env=env)
        unnamed = await call(tmp_path, "try", "members.py", env=env)

    assert read.code == 0, read
    assert '"who": "a2"' in read.out or "a2" in read.out
    assert (rejected.code, "the login of @members/a1 was not accepted" in rejected.err) == (2, True), rejected
    assert (unnamed.code, "Name one that no job uses: --pool @members/NAME" in unnamed.err) == (2, True), unnamed
    assert secrets_in(read.out + read.err + rejected.out + rejected.err) == []


async def test_a_spider_without_a_login_for_its_accounts_is_refused(tmp_path: Path) -> None:
    pools(tmp_path, *ACCOUNTS)
    async with AccountSite() as site:
        (tmp_path / "open.py").write_text(SPIDER.replace('@members.login("@members")\n', ""))
        env = {"MEMBERS": site.base, "PAGES": "10", **SETTINGS} | {f"P_{name}": "x" for name in ACCOUNTS}
        ended = await call(tmp_path, "run", "open.py", env=env)

    assert (ended.code, "has no login for them" in ended.err) == (2, True), ended
    assert not site.uses
