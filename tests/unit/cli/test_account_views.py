"""Account pools in views and commands: accounts by their name, and never a user or a password."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from trotline.cli import main as cli
from trotline.cli.pool_view import down_line, down_names, names_in, use_line
from trotline.config.backends import open_frontier, open_jobs, open_proxy_pools
from trotline.config.proxy_pools import load
from trotline.model.job import LaneRules, LaneView
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import DownMember, LanePoolView, MemberResult, account_id, lane_of
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.pool_tallies import PoolUse, login_tally, only_logins
from trotline.rules.pool_trouble_texts import trouble_line
from trotline.rules.pool_troubles import PoolTrouble, Trouble, trouble_of
from trotline.testing.frontier_contract import client

FRONTIER = "sqlite:.trotline/shop.frontier.db"
LANE = lane_of("shop.example", "@buyers")
SECRET = "s3cret-canary"  # noqa: S105 - of an account that does not exist
FILE = f"""
[pools.home]
proxies = ["http://127.0.0.1:1"]

[accounts.buyers]
proxies = "home"

[accounts.buyers.logins]
anna = {{ user = "user-of-anna", password = "{SECRET}" }}
bert = {{ user = "user-of-bert", password = "{SECRET}" }}

[accounts.guests]
proxies = "direct"
slots = 2
"""
SPIDER = """
from trotline import Page, Spider
shop = Spider("shop", pool="@buyers")
@shop.login("@buyers")
async def log_in(session):
    return True
@shop.page(seeds=["https://shop.example/"])
def page(page: Page):
    yield {}
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """A command line in a folder with a file of accounts: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("proxies.toml").write_text(FILE)
    Path("proxies.toml").chmod(0o600)
    Path("shop.py").write_text(SPIDER)

    def make(*words: str) -> tuple[int, str, str]:
        code = cli.call((*words, "--proxies", "proxies.toml"))
        said = capsys.readouterr()
        for hidden in ("Traceback", SECRET, "user-of"):
            assert hidden not in said.out + said.err
        return code, said.out, said.err

    return make


async def blocked(visits: int) -> list[int]:
    """Visits as accounts that the site blocks; which members they were."""
    book = load("proxies.toml")
    pools = await open_proxy_pools(FRONTIER)
    assert await pools.register(book.pool("@buyers"))
    await pools.close()
    jobs = await open_jobs(FRONTIER)
    job = await jobs.start("shop", LaneRules(default=Pace(rate=Rate(1000.0))))
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, job))
    await frontier.put([Task(url="https://shop.example/", route="page", lane=LANE, fingerprint=1, pool="@buyers")])
    members = []
    for _ in range(visits):
        [lease] = await frontier.lease("w", 1, wait=5.0, pools=("@buyers",))
        members.append(lease.member)
        news = LaneFeedback(Kind.BLOCKED)
        await frontier.settle("w", [Settlement(lease, Snooze(0.0, "x"), news=news, member=MemberResult.BLOCKED)])
    await frontier.close()
    return members


def test_the_list_names_accounts_and_ends_the_rest_of_one(call: Call) -> None:
    [member] = asyncio.run(blocked(1))
    name = "anna" if member == account_id("@buyers/anna") else "bert"
    code, out, _ = call("proxies", "list")
    assert code == 0
    assert "@buyers: 2 accounts (proxies of home)\n" in out
    assert "@guests: 2 accounts (direct); no worker uses it yet" in out
    assert re.search(r"shop\.example +2 +1 +0 +1 +1$", out, re.M)
    lane = ("proxies", "list", "--pool", "@buyers", "--lane", "shop.example")
    _, out, _ = call(*lane)
    assert "1 of 2 accounts were used here" in out
    assert re.search(rf"^  account .*\n  {name} +0\.\d\d +1  banned, back in", out, re.M)
    [facts] = [json.loads(line) for line in call(*lane, "--json")[1].splitlines()]
    assert (facts["account"], facts["banned"]) == (name, True)
    assert call(*lane, "--release", "--member", name)[1] == f"{LANE}: 1 quarantine ended\n"
    assert "banned, back" not in call(*lane)[1]
    kinds = [json.loads(line).get("kind") for line in call("proxies", "list", "--json")[1].splitlines()]
    assert kinds[0] == "accounts"


def test_a_lane_of_one_account_is_a_lane_of_its_pool(call: Call) -> None:
    asyncio.run(blocked(1))
    one = lane_of("shop.example", "@buyers/anna")
    for words in (("--lane", one), ("--pool", "@buyers", "--lane", one), ("--pool", "@buyers/anna", "--lane", one)):
        code, out, _ = call("proxies", "list", *words)
        assert (code, out.partition(":")[0]) == (0, one)
    assert call("proxies", "list", "--pool", "@buyers/anna", "--lane", "shop.example")[1].startswith(f"{one}:")


def test_check_tries_proxies_and_says_so(call: Call) -> None:
    target = ("--target", "http://127.0.0.1:8099/", "--allow", "127.0.0.1", "--timeout", "0.1s", "--limit", "1")
    _, out, err = call("proxies", "check", *target)
    assert "accounts are not tried, only proxies: without @buyers, @guests" in err
    assert "127.0.0.1:1" in out
    _, out, err = call("proxies", "check", "@buyers", *target)
    assert "these are the proxies of @buyers: pool home" in err
    code, _, err = call("proxies", "check", "@guests", *target)
    assert code != 0
    assert "@guests goes out directly: it has no proxies to try" in err


def test_doctor_has_a_line_for_each_account_pool_and_knows_its_name(call: Call) -> None:
    _, out, _ = call("doctor", "shop.py")
    assert re.search(r"accounts +pool @buyers: 2 accounts \(proxies of home\) from proxies\.toml", out)
    assert re.search(r"accounts +pool @guests: 2 accounts \(direct connections\)", out)
    Path("typo.py").write_text(SPIDER.replace("@buyers", "@buyer"))
    _, out, _ = call("doctor", "typo.py")
    assert "there is no account pool '@buyer'" in out
    assert "Did you mean '@buyers'?" in out


def test_a_page_is_not_tried_with_an_account_that_a_worker_may_hold(call: Call) -> None:
    code, _, err = call("try", "shop.py")
    assert code != 0
    assert "a worker may be using any of them" in err
    assert "--pool @buyers/NAME. Without an account: --pool home" in err


def test_workers_can_serve_an_account_pool(call: Call) -> None:
    code, _, err = call("work", "shop.py", "--pool", "@sellers", "--frontier", FRONTIER)
    assert code != 0
    assert "there is no account pool '@sellers'" in err
    code, _, err = call("work", "shop.py", "--pool", "@buyers/anna", "--frontier", FRONTIER)
    assert code != 0
    assert "'@buyers/anna' is not a name of pools" in err


def trouble(kind: Trouble, pool: str = "@buyers", members: int = 3, account: str = "") -> PoolTrouble:
    lane = lane_of("shop.example", f"{pool}{account}")
    return PoolTrouble(pool=pool, lane=lane, host="shop.example", trouble=kind, members=members, back_in=240.0)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (trouble(Trouble.RESTING), "all 3 accounts of @buyers rest for shop.example, first back in 4 min"),
        (
            trouble(Trouble.RESTING, members=1),
            "the only account of @buyers rests for shop.example, first back in 4 min",
        ),
        (
            trouble(Trouble.RESTING, account="/anna"),
            "account @buyers/anna rests for shop.example, first back in 4 min",
        ),
        (trouble(Trouble.DOWN), "all 3 accounts of @buyers fail, next try in 4 min"),
        (trouble(Trouble.EMPTY), "@buyers has no accounts: tasks of shop.example wait"),
        (
            trouble(Trouble.SITE_BLOCKED),
            "shop.example blocks all accounts of @buyers or rejects their logins: probing, next in 4 min",
        ),
        (trouble(Trouble.NOT_SERVED), "no worker serves the pool @buyers: tasks of shop.example wait"),
        (trouble(Trouble.RESTING, "home"), "all 3 proxies of pool home rest for shop.example, first back in 4 min"),
    ],
)
def test_troubles_say_accounts(found: PoolTrouble, line: str) -> None:
    assert trouble_line(found) == line


END_THE_REST = "then end the rest: trotline proxies list --pool @buyers --lane shop.example --release"


@pytest.mark.parametrize(
    ("logins", "account", "line"),
    [
        (3, "", "the logins of 3 accounts of @buyers were rejected by shop.example, next try in 4 min"),
        (1, "", "the login of 1 account of @buyers was rejected by shop.example, next try in 4 min"),
        (1, "/anna", "the login of account @buyers/anna was rejected by shop.example, next try in 4 min"),
    ],
)
def test_rejected_logins_are_no_block_and_say_what_to_do(logins: int, account: str, line: str) -> None:
    for kind in (Trouble.SITE_BLOCKED, Trouble.RESTING):
        found = msgspec.structs.replace(trouble(kind, account=account), logins=logins)
        assert trouble_line(found) == f"{line}: check passwords and the login handler, {END_THE_REST}"


def test_bans_that_are_all_rejected_logins_are_known_by_the_counters_of_the_job() -> None:
    lane = LaneView(lane="shop.example via @buyers", waiting=9, leased=0, interval=1.0)
    ring = LanePoolView(lane=lane.lane, members=3, resting=3, banned=3, first_back=60.0)
    counters = {"proxy blocked: @buyers": 3, login_tally(lane.lane): 3}
    assert only_logins(counters) == {"@buyers"}
    assert only_logins({**counters, "proxy blocked: @buyers": 4}) == only_logins({}) == set()
    for known, logins in ((True, 3), (False, 0)):
        found = trouble_of(lane, ring, only_logins=known)
        assert found is not None and found.logins == logins


def test_uses_and_names_of_accounts(call: Call) -> None:
    use = PoolUse(pool="@buyers", pages=98, bans=1, faults=2)
    assert use_line(use) == "@buyers: 98 pages, blocked or login rejected: 1, 2 faults"
    known = PoolUse(pool="@buyers", pages=98, bans=3, logins_rejected=2)
    assert use_line(known) == "@buyers: 98 pages, 2 logins rejected, blocked: 1"
    name = names_in(load("proxies.toml"))
    down = down_names({"@buyers": [DownMember(account_id("@buyers/anna"), 3, 60.0), DownMember(7, 3, 60.0)]}, name)
    assert down_line("@buyers", down["@buyers"]) == "@buyers: down: anna, member 000000000007"
