"""Promises of the commands: what they say, what they return, and that they never show a bare traceback."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trotline.cli import main as cli
from trotline.config.backends import open_frontier, open_jobs
from trotline.model.job import LaneRules
from trotline.model.lease import Reject, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.pace import Pace, Rate
from trotline.model.task import Task
from trotline.testing.frontier_contract import client

COMMANDS = ("new", "try", "run", "status", "dead", "export", "doctor")
SPIDER = """
from trotline import Spider

shop = Spider("shop")


@shop.page(seeds=["https://shop.example/"])
def listing(page):
    yield {}


@shop.page
def product(page):
    yield {}
"""
FRONTIER = "sqlite:.trotline/shop.frontier.db"

Said = tuple[int, str, str]
Call = Callable[..., Said]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def make(*words: str) -> Said:
        code = cli.call(words)
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return code, said.out, said.err

    yield make
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
async def job(call: Call) -> str:
    """A job with one done, one waiting and two dead tasks, and one bad record."""
    pace = Pace(rate=Rate(1000.0))
    jobs = await open_jobs(FRONTIER)
    started = await jobs.start("shop", LaneRules(default=pace))
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, started))
    urls = ["https://me:secret@shop.example/a\x1b[2J", "https://shop.example/b", "https://shop.example/c"]
    tasks = [Task(url=url, route="product", lane="shop.example", fingerprint=n + 1) for n, url in enumerate(urls)]
    await frontier.put(tasks)
    leases = []
    while len(leases) < 3:
        leases += await frontier.lease("w", 3, wait=1.0)
    outcomes = [Bury("blocked: 403", "server: nginx\x1b[31m"), Bury("broken: 503"), Done()]
    rejects = (Reject("product", "price: not a number", '{"price":"x"}'),)
    order = {lease.task.fingerprint: lease for lease in leases}
    await frontier.settle(
        "w",
        [Settlement(order[n + 1], outcome, rejects=rejects if n == 2 else ()) for n, outcome in enumerate(outcomes)],
    )
    await frontier.put([Task(url="https://shop.example/d", route="product", lane="shop.example", fingerprint=9)])
    await frontier.close()
    return started.id


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(call: Call, command: str):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert 2 <= out.count(f"    trotline {command} ") <= 4, "two to four examples"


def test_the_help_names_every_command_without_importing_one(tmp_path: Path):
    heavy = ("aiohttp", "rich", "selectolax", "sqlite3", "trotline.commands.run", "msgspec")
    code = (
        "import sys; from trotline.cli.main import call; call(['--help']); "
        f"print('LOADED', [name for name in {heavy!r} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "LOADED []" in out
    for command in COMMANDS:
        assert f"\n  {command} " in out


def test_no_command_at_all_is_a_usage_error_that_helps(call: Call):
    code, out, err = call()
    assert code == 2
    assert "Commands:" in out + err


@pytest.mark.parametrize(("typed", "hint"), [("rnu", "'run'"), ("shop.py", "trotline run shop.py")])
def test_a_misspelt_command_is_guessed(call: Call, typed: str, hint: str):
    code, _, err = call(typed)
    assert code == 2
    assert hint in err


def test_the_version_is_told(call: Call):
    assert call("--version")[1].startswith("trotline 0.")


def test_an_error_nobody_expected_goes_to_a_file(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("trotline.config.spider_loader.parse_ref", lambda text: 1 / 0)
    code, _, err = call("doctor", "shop.py")
    assert code == 1
    assert "unexpected ZeroDivisionError" in err
    [story] = tmp_path.glob("trotline-*.txt")
    assert "Traceback" in story.read_text()


# doctor


def test_doctor_checks_the_frontier_and_the_sink_that_are_set(call: Call, monkeypatch: pytest.MonkeyPatch):
    assert call("doctor")[0] == 0
    Path("trotline.toml").write_text('sink = "postgresql://127.0.0.1:1/scrapes"\n')
    code, out, _ = call("doctor")
    assert code == 2
    assert "1 thing to put right first: sink." in out
    monkeypatch.setenv("TROTLINE_FRONTIER", "redis://127.0.0.1:1/0")
    assert "frontier, sink." in call("doctor")[1]


# new


def test_new_writes_a_spider_that_loads_and_names_the_next_commands(call: Call):
    code, out, _ = call("new", "my-shop", "https://shop.example/list")
    assert code == 0
    assert "trotline try my-shop.py" in out
    assert "trotline run my-shop.py" in out
    assert "https://shop.example/list" in Path("my-shop.py").read_text()
    assert call("doctor", "my-shop.py")[0] == 0


def test_new_never_overwrites(call: Call):
    Path("shop.py").write_text("precious")
    code, _, err = call("new", "shop")
    assert code == 2
    assert "there already" in err
    assert Path("shop.py").read_text() == "precious"


@pytest.mark.parametrize("words", [("a b",), ("shop", "shop.example"), ("shop", 'https://x/"+quit()+"')])
def test_new_refuses_what_would_not_run(call: Call, words: tuple[str, ...]):
    code, _, err = call("new", *words)
    assert code == 2
    assert err.startswith("error: ")
    assert not list(Path().glob("*.py"))


@pytest.mark.parametrize("name", ["class", "Page", "listing", "2nd", "shop"])
def test_new_makes_a_working_file_of_any_name(call: Call, name: str):
    call("new", name)
    assert call("doctor", f"{name}.py")[0] == 0


# run: what cannot start


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nowhere.py",), "there is no file nowhere.py"),
        (("shop.py", "--slots", "0"), "--slots"),
        (("shop.py", "--out", "rows.xls"), "--out: 'rows.xls' is not a sink"),
        (("shop.py", "--out", "a.csv", "--sink", "sqlite:b.db"), "both"),
        (("shop.py", "--max-time", "soon"), "--max-time: 'soon' is not a length of time"),
        (("shop.py", "--frontier", "amqp://u@h"), "--frontier"),
        (("shop.py", "--frontier", "redis://:secret@h/0"), "Write --frontier env:NAME or --frontier file:PATH"),
        (("shop.py", "--sink", "postgresql://u:secret@h/d"), "or set TROTLINE_SINK"),
        (("shop.py", "--out", "postgresql://h/d?password=secret"), "--out has a password in it"),
        (("shop.py:nobody",), "shop.py:shop"),
    ],
)
def test_a_run_that_cannot_start_says_why_and_returns_2(call: Call, words: tuple[str, ...], part: str):
    Path("shop.py").write_text(SPIDER)
    code, _, err = call("run", *words)
    assert code == 2
    assert part in err
    assert "secret" not in err
    assert "secret" not in err
    assert not Path(".trotline").exists()


def test_a_misspelt_variable_stops_a_run(call: Call, monkeypatch: pytest.MonkeyPatch):
    Path("shop.py").write_text(SPIDER)
    monkeypatch.setenv("TROTLINE_SLOT", "3")
    code, _, err = call("run", "shop.py")
    assert code == 2
    assert "TROTLINE_SLOTS" in err


# try: what cannot start


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("prodcut", "https://shop.example/p"), "no route 'prodcut'"),
        (("https://shop.example/p",), "listing, product"),
        (("product", "shop.example/p"), "not a web address"),
        (("product",), "route 'product' has no seed"),
        (("product", "a", "b"), "at most"),
    ],
)
def test_try_says_what_it_needs(call: Call, words: tuple[str, ...], part: str):
    Path("shop.py").write_text(SPIDER)
    code, _, err = call("try", "shop.py", *words)
    assert code == 2
    assert part in err


# status and dead


def test_status_without_jobs_says_how_to_start_one_and_makes_no_file(call: Call):
    assert "trotline run" in call("status")[1]
    assert call("dead")[0] == 2
    assert call("status", "--frontier", "sqlite:none.db")[0] == 2
    assert list(Path().iterdir()) == []


def test_status_shows_the_four_numbers(call: Call, job: str):
    code, out, _ = call("status")
    assert code == 0
    # Its worker has not left: it is between two starts.
    assert out.splitlines()[1].split()[:6] == [job, "running", "1", "0", "1", "2"]


def test_status_of_one_job_shows_its_dead_and_what_to_do(call: Call, job: str):
    out = call("status", job)[1]
    assert "blocked: 403" in out
    assert "trotline dead shop" in out


def test_status_json_is_json(call: Call, job: str):
    facts = json.loads(call("status", "shop", "--json")[1])
    assert (facts["job"], facts["waiting"], facts["done"], facts["dead"]) == (job, 1, 1, 2)
    assert facts["reasons"]["broken: 503"] == 1


@pytest.mark.parametrize("name", ["shop", "shop-1", "shop.py", None])
def test_a_job_is_found_by_any_of_its_names(call: Call, job: str, name: str | None):
    Path("shop.py").write_text(SPIDER)
    code, out, _ = call("dead", *([name] if name else []))
    assert code == 0
    assert "shop-1: 2 dead, 1 rejected record\n" in out


def test_dead_are_tasks_and_rejected_are_records_in_every_command(call: Call, job: str):
    dead = call("dead", "shop")[1]
    assert dead.index("\ndead\n") < dead.index("1  blocked: 403") < dead.index("\nrejected records\n")
    assert dead.index("\nrejected records\n") < dead.index("1  bad record: price: not a number")
    assert "shop-1: 1 rejected record\n" in call("dead", "shop", "--why", "bad record")[1]
    assert "shop-1: 1 dead\n" in call("dead", "shop", "--why", "broken")[1]

    head, line = call("status")[1].splitlines()
    assert dict(zip(head.split(), line.split(), strict=False))["rejected"] == "1"
    closely = call("status", "shop")[1]
    assert "done 1  dead 2  rejected 1\n" in closely
    assert closely.index("\ndead\n") < closely.index("\nrejected records\n") < closely.index("bad record: price")
    facts = json.loads(call("status", "shop", "--json")[1])
    assert (facts["dead"], facts["rejected"]) == (2, 1)


def test_a_misspelt_job_is_guessed(call: Call, job: str):
    code, _, err = call("dead", "shpo")
    assert code == 2
    assert "Did you mean shop" in err


def test_the_dead_are_listed_without_secrets_and_control_characters(call: Call, job: str):
    out = call("dead")[1]
    assert "1  blocked: 403" in out
    assert "secret" not in out
    assert "\x1b" not in out
    assert "bad record: price: not a number" in out


def test_one_grave_is_shown_whole(call: Call, job: str):
    out = call("dead", "0000000000000001")[1]
    assert "blocked: 403" in out
    assert "server: nginx␛[31m" in out
    assert "secret" not in out


def test_an_unknown_id_is_said_to_be_unknown(call: Call, job: str):
    code, _, err = call("dead", "shop", "00000000000000ff")
    assert code == 2
    assert "00000000000000ff" in err


def test_reviving_by_reason_revives_only_those(call: Call, job: str):
    assert "1 page of shop-1" in call("dead", "shop", "--why", "blocked", "--revive")[1]
    facts = json.loads(call("status", "shop", "--json")[1])
    assert (facts["waiting"], facts["dead"]) == (2, 1)
    assert "Nothing to revive" in call("dead", "shop", "--why", "blocked", "--revive")[1]


POOLS = """
[pools.isp]
proxies = ["http://127.0.0.1:3128"]
"""


def test_revived_tasks_get_another_pool_if_it_exists(call: Call, job: str, monkeypatch: pytest.MonkeyPatch):
    Path("proxies.toml").write_text(POOLS)
    monkeypatch.setenv("TROTLINE_PROXIES", "proxies.toml")
    revive = ("dead", "shop", "--why", "blocked", "--revive")

    code, _, err = call(*revive, "--pool", "ips")
    assert code == 2
    assert "there is no proxy pool 'ips'" in err
    assert "'isp'" in err
    code, out, err = call(*revive, "--pool", "isp")
    assert (code, err) == (0, "")
    assert "1 page of shop-1 will be visited again, with a fresh start, through the proxy pool isp." in out
    code, out, err = call("dead", "--why", "broken", "--revive", "--pool", "direct", "--json")
    assert (code, err, json.loads(out)) == (0, "", {"job": job, "revived": 1, "pool": "direct"})


def test_a_pool_that_cannot_be_checked_is_noted(call: Call, job: str):
    code, out, err = call("dead", "--why", "blocked", "--revive", "--pool", "isp")

    assert code == 0
    assert "not checked here (isp)" in err
    assert "through the proxy pool isp" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pool", "isp"), "with --revive"),
        (("--revive", "--export", "x", "--pool", "isp"), "with --revive"),
        (("--revive", "--pool", "@buyers"), "pool of accounts"),
        (("--revive", "--pool", "a b"), "not the name of a proxy pool"),
    ],
)
def test_a_pool_without_effect_or_meaning_is_refused(call: Call, job: str, words: tuple[str, ...], said: str):
    code, _, err = call("dead", "shop", *words)

    assert code == 2
    assert said in err
    assert json.loads(call("status", "shop", "--json")[1])["dead"] == 2


def test_the_dead_are_exported_as_json_lines_and_no_file_is_overwritten(call: Call, job: str):
    assert call("dead", "--export", "dead.jsonl")[0] == 0
    graves = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert sorted(grave["why"] for grave in graves) == [
        "bad record: price: not a number",
        "blocked: 403",
        "broken: 503",
    ]
    assert "secret" not in Path("dead.jsonl").read_text()
    code, _, err = call("dead", "--export", "dead.jsonl")
    assert code == 2
    assert "there already" in err


def test_trace_names_the_rejected_records_of_a_page_and_only_those(call: Call, job: str):
    Path("shop.py").write_text(SPIDER)
    out = call("trace", "https://shop.example/c", "shop")[1]

    assert "1 record of this page was rejected and is not stored: price: not a number." in out
    assert "trotline dead shop-1 r1\n" in out
    assert call("dead", "shop-1", "r1")[0] == 0
    assert "rejected" not in call("trace", "https://shop.example/b", "shop")[1]
    facts = json.loads(call("trace", "https://shop.example/c", "shop", "--json")[1])
    assert [reject["id"] for reject in facts["rejected"]] == ["r1"]


# export and doctor


def test_export_without_records_says_where_it_looked(call: Call):
    code, _, err = call("export", "shop")
    assert code == 2
    assert "shop.db" in err
    assert "--sink" in err


def test_export_of_a_job_that_does_not_exist_says_so(call: Call, job: str):
    code, _, err = call("export", "shop-7")
    assert code == 2
    assert "there is no job or spider 'shop-7' here" in err
    assert "Did you mean shop-1?" in err


def test_export_of_a_job_with_another_sink_says_where_its_records_may_be(call: Call, job: str):
    for name in ("shop", "shop-1"):
        code, _, err = call("export", name)
        assert code == 2
        assert "there are no rows at shop.db" in err
        assert "shop-1 stored its records elsewhere" in err
        assert "--sink URL" in err
        assert "Run the spider first" not in err


def test_export_of_a_sink_that_is_named_and_missing_asks_for_the_path(call: Call, job: str):
    code, _, err = call("export", "shop", "--sink", "other.db")
    assert code == 2
    assert "there are no rows at other.db" in err
    assert "Is the path right?" in err


def test_export_needs_a_form_it_knows(call: Call):
    code, _, err = call("export", "shop", "rows.xls")
    assert code == 2
    assert ".jsonl, .csv or .parquet" in err


def test_doctor_is_content_with_a_good_spider_and_leaves_no_files(call: Call):
    Path("shop.py").write_text(SPIDER)
    code, out, _ = call("doctor", "shop.py")
    assert code == 0
    assert "trotline run shop.py" in out
    assert {path.name for path in Path().iterdir()} <= {"shop.py", "__pycache__"}


@pytest.mark.parametrize(
    ("seeds", "ready"),
    [
        ('seeds=["https://shop.example/"]', "Ready:  trotline try shop.py   then   trotline run shop.py\n"),
        (
            'sitemap="https://shop.example/sitemap.xml"',
            "Ready:  trotline run shop.py --limit 5   then   trotline run shop.py\n",
        ),
        ("", "Ready:  trotline run shop.py --seeds urls.txt\n"),
    ],
)
def test_doctor_suggests_commands_that_work(call: Call, seeds: str, ready: str):
    Path("shop.py").write_text(SPIDER.replace('seeds=["https://shop.example/"]', seeds))
    assert call("doctor", "shop.py")[1].endswith(ready)


def test_doctor_shows_a_broken_spider_with_its_line(call: Call):
    Path("shop.py").write_text("x = 1\ny = = 2\n")
    code, out, _ = call("doctor", "shop.py")
    assert code == 2
    assert "line 2" in out
    assert "spider" in out.splitlines()[-1]


def test_doctor_finds_a_database_that_is_none_of_ours(call: Call):
    Path("shop.py").write_text(SPIDER)
    Path("shop.db").write_text("this is not a database at all, but long enough to be read as one" * 20)
    code, out, _ = call("doctor", "shop.py", "--json")
    checks = {check["what"]: check for check in map(json.loads, out.splitlines())}
    assert code == 2
    assert checks["sink"]["state"] == "fail"
    assert checks["sink"]["advice"]


def test_doctor_reports_a_wrong_setting_with_its_place(call: Call):
    Path("trotline.toml").write_text("slots = 'many'\n")
    code, out, _ = call("doctor")
    assert code == 2
    assert "slots in trotline.toml" in out


def test_pace_shows_sets_and_clears_what_holds_for_every_job(call: Call, job: str) -> None:
    said = call("pace", "--host", "shop.example")[1]
    assert "shop.example in sqlite:" in said
    assert f"  {job}" in said
    assert "1000/s, at most 8 visits at once" in said

    said = call("pace", "--host", "shop.example", "2/s", "--concurrency", "3")[1]
    assert "2/s, at most 3 visits at once, for every job" in said
    assert "--clear" in said

    [line] = call("pace", "--host", "shop.example", "--clear", "--json")[1].splitlines()
    told = json.loads(line)
    assert told["ordered"] is None
    assert told["interval"] == 0.001
    assert "never visited" in call("pace", "--host", "other.example")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("2/week",), "is not a rate"),
        (("2/s", "--clear"), "--clear takes the pace back"),
        (("--concurrency", "3"), "--concurrency belongs to a pace"),
    ],
)
def test_pace_refuses_what_has_no_effect(call: Call, job: str, words: tuple[str, ...], said: str) -> None:
    code, _, err = call("pace", "--host", "shop.example", *words)

    assert code == 2
    assert said in err
