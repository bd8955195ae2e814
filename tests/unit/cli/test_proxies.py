"""`trotline proxies list` and `simulate`, with a real frontier: what they show, and what they never show."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from trotline.cli import main as cli
from trotline.cli import proxies_simulate
from trotline.config.backends import open_frontier, open_jobs, open_proxy_pools
from trotline.config.proxy_pools import load
from trotline.model.job import LaneRules, WorkerInfo
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done, Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import MemberResult, Pool, hex_id, lane_of
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.model.work_stats import WorkStats
from trotline.rules.proxy_simulation import PRESETS
from trotline.testing.frontier_contract import client

FRONTIER = "sqlite:.trotline/shop.frontier.db"
LANE = lane_of("shop.example", "home")
SECRET = "s3cret-canary"  # noqa: S105 - of a proxy that does not exist
PROXIES = f"""
[pools.home]
kind = "residential"
provider = "Acme"
region = "eu"
hold = 1
proxies = ["http://anna:{SECRET}@192.0.2.1:3128", "http://192.0.2.2:3128", "socks5://192.0.2.3:1080"]

[pools.spare]
proxies = ["http://192.0.2.9:3128"]
"""
NEWS = {MemberResult.GOOD: LaneFeedback(Kind.OK), MemberResult.BLOCKED: LaneFeedback(Kind.BLOCKED)}

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """A command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def make(*words: str) -> tuple[int, str, str]:
        code = cli.call(words)
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        assert SECRET not in said.out + said.err
        assert "anna" not in said.out + said.err
        return code, said.out, said.err

    return make


def used(results: list[MemberResult]) -> list[int]:
    """Visit the shop once through each proxy, with these results in their order; which members they were."""
    return asyncio.run(_used(results))


async def _used(results: list[MemberResult]) -> list[int]:
    jobs = await open_jobs(FRONTIER)
    # So fast that no member rests any more when a command looks at it, also where files are in memory.
    job = await jobs.start("shop", LaneRules(default=Pace(rate=Rate(1_000_000.0))))
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, job))
    tasks = [
        Task(url=f"https://shop.example/{n}", route="page", lane=LANE, fingerprint=n + 1, pool="home") for n in range(9)
    ]
    await frontier.put(tasks)
    members = []
    for result in results:
        [lease] = await frontier.lease("w", 1, wait=2.0, pools=("home",))
        members.append(lease.member)
        outcome = Done() if result is MemberResult.GOOD else Snooze(0.0, "again")
        await frontier.settle("w", [Settlement(lease, outcome, news=NEWS.get(result), member=result)])
    await frontier.close()
    return members


@pytest.fixture
def proxies(call: Call) -> str:
    """A file with two pools, of which the frontier knows one."""
    path = Path("proxies.toml")
    path.write_text(PROXIES)
    path.chmod(0o600)
    asyncio.run(registered(load(str(path)).pool("home")))
    return str(path)


async def registered(pool: Pool) -> None:
    pools = await open_proxy_pools(FRONTIER)
    assert await pools.register(pool)
    await pools.close()


def events(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_list_has_every_pool_and_how_its_members_are(call: Call, proxies: str) -> None:
    used([MemberResult.GOOD, MemberResult.BLOCKED])
    code, out, _ = call("proxies", "list", "--proxies", proxies)

    assert code == 0
    assert out.startswith("pools of sqlite:.trotline/shop.frontier.db\nhome: 3 members (residential, provider Acme, ")
    assert re.search(r"shop\.example +3 +2 +0 +1 +1$", out, re.M)
    assert "spare: 1 member (datacenter); no worker uses it yet" in out
    assert max(map(len, out.splitlines())) <= 80


def test_without_the_file_the_frontier_says_which_pools_there_are(call: Call, proxies: str) -> None:
    code, out, _ = call("proxies", "list")

    assert code == 0
    assert "\nhome: 3 members\n" in out
    assert "no host was visited through it yet" in out


@pytest.mark.parametrize("setting", ["nowhere.toml", "broken.toml"])
def test_a_file_that_is_gone_or_broken_does_not_hide_what_the_fleet_shares(
    call: Call, proxies: str, setting: str
) -> None:
    Path("broken.toml").write_text("pools = nothing")
    banned, _ = used([MemberResult.BLOCKED, MemberResult.GOOD])
    code, out, err = call("proxies", "list", "--proxies", setting)
    lane = call("proxies", "list", "--lane", LANE, "--proxies", setting)

    assert code == 0
    assert re.search(r"shop\.example +3 +2 +0 +1 +1$", out, re.M)
    assert err.startswith("warning: ") and setting in err and "members are shown by their ids" in err
    assert lane[0] == 0 and f"{hex_id(banned)} " in lane[1]


def test_a_file_that_is_gone_is_an_error_where_nothing_is_shared(call: Call) -> None:
    asyncio.run(_used([]))
    code, out, err = call("proxies", "list", "--proxies", "nowhere.toml")

    assert (code, out) == (2, "")
    assert "nowhere.toml cannot be read" in err


def test_json_has_the_same_for_machines(call: Call, proxies: str) -> None:
    used([MemberResult.BLOCKED])
    found = events(call("proxies", "list", "--proxies", proxies, "--json")[1])

    pool, lane = found
    assert (pool["event"], pool["pool"], pool["members"], pool["kind"]) == ("pool", "home", 3, "residential")
    assert (lane["event"], lane["lane"], lane["banned"], lane["site_blocked"]) == ("lane", LANE, 1, False)


def test_members_of_a_lane_are_named_by_the_file_or_by_their_id(call: Call, proxies: str) -> None:
    good, banned = used([MemberResult.GOOD, MemberResult.BLOCKED])
    public = {member.id: load(proxies).way("home", member.id, LANE) for member in load(proxies).pool("home").members}
    named = call("proxies", "list", "--pool", "home", "--lane", "shop.example", "--proxies", proxies)[1]
    unnamed = call("proxies", "list", "--lane", LANE)[1]

    assert re.search(rf"{re.escape(public[banned].public)} +0\.\d\d +1  banned, back in 3\d min", named)
    assert re.search(rf"{re.escape(public[good].public)} +0\.\d\d +0  free", named)
    assert re.search(rf"{hex_id(banned)} +0\.\d\d +1  banned", unnamed)
    assert "2 of 3 members were used here" in named
    assert max(map(len, named.splitlines())) <= 80
    [first, *_] = events(call("proxies", "list", "--lane", LANE, "--proxies", proxies, "--json")[1])
    assert (first["member"], first["proxy"], first["banned"]) == (hex_id(banned), public[banned].public, True)


def test_quarantines_of_a_lane_are_released(call: Call, proxies: str) -> None:
    used([MemberResult.BLOCKED, MemberResult.BLOCKED])
    code, out, _ = call("proxies", "list", "--pool", "home", "--lane", "shop.example", "--release")

    assert (code, out) == (0, f"{LANE}: 2 quarantines ended\n")
    assert "banned, back" not in call("proxies", "list", "--lane", LANE)[1]


@pytest.mark.parametrize("by", ["id", "proxy"])
def test_one_quarantine_is_released(call: Call, proxies: str, by: str) -> None:
    first, second = used([MemberResult.BLOCKED, MemberResult.BLOCKED])
    way = load(proxies).way("home", first, LANE)
    assert way is not None
    typed = hex_id(first) if by == "id" else way.public
    words = ("proxies", "list", "--lane", LANE, "--proxies", proxies)
    code, out, _ = call(*words, "--release", "--member", typed)

    assert (code, out) == (0, f"{LANE}: 1 quarantine ended\n")
    left = [one for one in events(call(*words, "--json")[1]) if one["banned"]]
    assert [one["member"] for one in left] == [hex_id(second)]


def test_members_that_fail_by_themselves_are_down_for_all_hosts(call: Call, proxies: str) -> None:
    book = load(proxies)
    [only] = [each for each in book.pool("home").members if book.way("home", each.id, "").public == "192.0.2.2:3128"]
    pool = book.pool("home")
    asyncio.run(registered(msgspec.structs.replace(pool, version=pool.version + 1, members=(only,))))
    # Each failure rests the member for 10 s: they are of three hosts.
    asyncio.run(faults(3))
    out = call("proxies", "list", "--proxies", proxies)[1]
    [down] = [one for one in events(call("proxies", "list", "--json")[1]) if one["event"] == "down"]

    assert re.search(r"down for all hosts: 192\.0\.2\.2:3128: 3 faults in a row, back in \d+(\.\d)? s", out)
    assert (down["member"], down["proxy"], down["faults"]) == (hex_id(only.id), None, 3)


def test_a_proxy_that_is_down_has_the_reason_that_a_worker_met(call: Call, proxies: str) -> None:
    pool = load(proxies).pool("home")
    only = pool.members[0]
    asyncio.run(registered(msgspec.structs.replace(pool, version=pool.version + 1, members=(only,))))
    stats = WorkStats(proxy_faults={hex_id(only.id): "proxy: login refused (status 407)"})
    about = WorkerInfo(host="node-1", stats=stats, proxies_trouble="pool 'home' has 1 proxy, 3 before")
    asyncio.run(faults(3, about))
    out = call("proxies", "list")[1]
    lane = call("proxies", "list", "--pool", "home", "--lane", "h0.example")[1]
    [down] = [one for one in events(call("proxies", "list", "--json")[1]) if one["event"] == "down"]

    assert re.search(r"3 faults in a row, back in .* s: proxy: login refused \(status 407\)$", out, re.M)
    assert "workers on node-1: pool 'home' has 1 proxy, 3 before" in out
    assert "proxy: login refused (status 407)" in lane
    assert down["why"] == "proxy: login refused (status 407)"


def test_a_pool_whose_hosts_are_forgotten_says_which_job_used_it(call: Call, proxies: str) -> None:
    asyncio.run(ended_job())
    out = call("proxies", "list", "--pool", "home")[1]
    [pool] = events(call("proxies", "list", "--pool", "home", "--json")[1])

    assert "  no host is visited through it now; shop-1: 98 pages, 2 bans\n" in out
    assert pool["last_use"]["job"] == "shop-1"


async def ended_job() -> None:
    jobs = await open_jobs(FRONTIER)
    job = await jobs.start("shop", LaneRules())
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, job))
    await frontier.put([Task(url="https://h/", route="page", lane="h", fingerprint=1)])
    [lease] = await frontier.lease("w", 1)
    await frontier.settle("w", [Settlement(lease, Done(), tallies={"proxy good: home": 98, "proxy blocked: home": 2})])
    await frontier.close()


async def faults(hosts: int, info: WorkerInfo | None = None) -> None:
    jobs = await open_jobs(FRONTIER)
    # So fast that no member rests any more when a command looks at it, also where files are in memory.
    job = await jobs.start("shop", LaneRules(default=Pace(rate=Rate(1_000_000.0))))
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, job))
    lanes = [lane_of(f"h{n}.example", "home") for n in range(hosts)]
    await frontier.put(
        [
            Task(url="https://h/", route="page", lane=lane, fingerprint=n + 1, pool="home")
            for n, lane in enumerate(lanes)
        ]
    )
    for _ in range(hosts):
        [lease] = await frontier.lease("w", 1, wait=2.0, pools=("home",))
        await frontier.settle("w", [Settlement(lease, Snooze(60.0, "proxy"), member=MemberResult.FAULT)])
    await frontier.beat("w", info)
    await frontier.close()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--pool", "hom"), "Did you mean 'home'?"),
        (("--lane", "shop.example"), "through which pool?"),
        (("--release",), "--release needs --lane"),
        (("--lane", LANE, "--member", "192.0.2.1:3128"), "--member needs --release"),
        (("--lane", LANE, "--release", "--member", "10.0.0.1:80"), "no member '10.0.0.1:80' of pool 'home'"),
        (("--frontier", "sqlite:nowhere.db"), "there is no frontier sqlite:nowhere.db"),
    ],
)
def test_what_cannot_be_shown_is_said(call: Call, proxies: str, words: tuple[str, ...], part: str) -> None:
    used([MemberResult.BLOCKED])
    code, out, err = call("proxies", "list", *words)

    assert (code, out) == (2, "")
    assert part in err


def test_a_folder_without_a_frontier_is_not_written_to(call: Call) -> None:
    code, _, err = call("proxies", "list")

    assert code == 2
    assert "there is no frontier here yet" in err
    assert list(Path().iterdir()) == []


# simulate


def test_a_preset_is_simulated_and_drawn(call: Call) -> None:
    code, out, _ = call("proxies", "simulate", "--preset", "seed-3x10", "--minutes", "2", "--plot", "a.svg")

    assert code == 0
    assert re.search(r"^trotline +5\d\d\.\d +9\d% +0 +0 +0 +0\.01", out, re.M)
    assert max(map(len, out.splitlines())) <= 80
    drawn = Path("a.svg").read_text()
    assert drawn.count("<polyline") == 16
    assert not re.search(r"(href|src)=|url\(|<script", drawn)


def test_the_same_seed_gives_the_same_output_and_an_html_page_stands_alone(call: Call) -> None:
    words = ("proxies", "simulate", "--preset", "seed-3x10", "--minutes", "1", "--seed", "5")
    assert call(*words, "--json") == call(*words, "--json")
    assert call(*words, "--plot", "a.html")[0] == 0
    page = Path("a.html").read_text()
    assert "<svg" in page and "quarantine per process" in page
    assert not re.search(r"(href|src)=|url\(|<script", page)


def test_a_file_is_simulated(call: Call) -> None:
    Path("shop.toml").write_text(
        'minutes = 2\n[fleet]\nworkers = 2\n[pool]\nproxies = 4\npace = "1/s"\ndead = 0.5\n[site]\nlimit = "60/m"\n'
    )
    ours, *_ = events(call("proxies", "simulate", "shop.toml", "--json")[1])

    assert (ours["policy"], ours["minutes"], ours["most_per_minute"]) == ("trotline", 2, 120.0)
    assert ours["dead"] and len(ours["by_minute"]) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "which scenario?"),
        (("shop.toml", "--preset", "seed-3x10"), "which scenario?"),
        (("nowhere.toml",), "nowhere.toml cannot be read"),
        (("--preset", "seed-3x10", "--plot", "a.png"), "must end in .svg or .html"),
        (("--preset", "seed-3x10", "--minutes", "1", "--plot", "no/a.svg"), "no/a.svg cannot be written"),
    ],
)
def test_a_simulation_that_cannot_start_says_why(call: Call, words: tuple[str, ...], part: str) -> None:
    code, _, err = call("proxies", "simulate", *words)

    assert code == 2
    assert part in err


def test_the_help_knows_the_presets() -> None:
    assert tuple(PRESETS) == proxies_simulate.PRESETS


@pytest.mark.parametrize("verb", ["list", "check", "simulate"])
def test_every_verb_has_help_at_80_columns(call: Call, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call("proxies", verb, "--help")

    assert code == 0
    assert out.count(f"    trotline proxies {verb} ") >= 2
    assert max(map(len, out.splitlines())) <= 80
