"""Every setting with every command that starts or does work: it has an effect, or it is refused or named."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from trotline.cli import main as cli
from trotline.cli import try_page
from trotline.commands import coordinate, fetch, fleet, lab, push, reparse, run, start, work, write
from trotline.commands.run_report import Ending
from trotline.config import components, logs
from trotline.config.proxy_pools import PoolBook
from trotline.config.settings import NAMES
from trotline.config.settings_by_command import USED
from trotline.web import serve

SPIDER = """
import os

from trotline import Spider

shop = Spider("shop", queue_per_route=True, pool="default" if os.environ.get("POOLED") else "")


@shop.page(seeds=["https://shop.example/"])
def page(page): ...
"""
POOLS = """
[pools.home]
region = "eu"
proxies = ["http://127.0.0.1:9"]
[pools.default]
proxies = ["http://127.0.0.1:10"]
"""
OTHER = {
    "inbox": "redis://queue/0?inbox=wanted",
    "archive": "file:pages", "cache": "yes",
    "frontier": "sqlite:other.db", "sink": "jsonl:other.jsonl", "processes": "3", "slots": "7", "prefetch": "0",
    "max_pages": "5", "max_bytes": "2GB", "max_time": "7s", "grace": "9s", "memory": "300MiB", "visits": "no",
    "bandwidth": "5Mbit",
    "storage_patience": "8s", "allow_private": "yes", "allow": "10.0.0.0/8", "proxy": "http://127.0.0.1:9",
    "proxy_mode": "name", "proxies": "proxies.toml", "pools": "home", "regions": "eu", "routes": "page",
    "one_transaction": "yes",
    "metrics": "9400",
    "log_format": "json", "log_level": "debug", "otel": "http://127.0.0.1:4318", "otel_sample": "0.5",
}  # fmt: skip
"""For each setting a value that is not the default."""
WORDS = {
    "run": ["shop.py"], "work": ["shop.py", "--until-finished"], "start": ["shop.py", "--detach"],
    "coordinate": ["shop.py"], "push": ["shop.py", "urls.txt", "--table", "t"], "try": ["shop.py"],
    "web": ["shop.py"], "fleet": ["shop.py", "--max", "2"], "lab": ["shop.py"], "reparse": ["shop.py"],
    "fetch": ["https://shop.example/"],
    "shell": ["https://shop.example/", "--spider", "shop.py", "-c", "page"],
    "write": ["--from", "redis://queue/0?outbox=results"],
}  # fmt: skip
LOOKING = set(cli.COMMANDS) - set(USED)


class Taken(Exception):
    """What a command would have done with."""

    def __init__(self, *plan: Any) -> None:
        super().__init__()
        self.plan = plan


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a command was about to do, with these words and this environment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SPIDER)
    (tmp_path / "proxies.toml").write_text(POOLS)
    (tmp_path / "other.txt").write_text("http://127.0.0.1:11")

    ways: list[str] = []

    def members(book: PoolBook) -> None:
        """The ways out of `try`."""
        ways[:] = [
            way.public
            for pool in book.pools()
            for member in pool.members
            if (way := book.way(pool.name, member.id, "")) is not None
        ]

    monkeypatch.setattr(try_page, "RandomMembers", members)

    installed: list[Any] = []
    monkeypatch.setattr(logs, "install", lambda *given: installed.append(given))

    def take(*given: Any, **named: Any):
        if named:
            raise Taken(named, list(ways))
        plans = [each for each in given if not callable(each) and type(each).__name__ not in ("Spider", "list")]
        raise Taken(*plans, list(installed))

    for module, name in (
        (run, "run"),
        (work, "work"),
        (fetch, "fetch"),
        (fleet, "fleet"),
        (lab, "lab"),
        (start, "start"),
        (coordinate, "coordinate"),
        (push, "push"),
        (serve, "serve"),
        (write, "write"),
        (reparse, "reparse"),
        (components, "open_fetcher"),
    ):
        monkeypatch.setattr(module, name, take)
    # Children that nobody would use.
    for module_name in ("trotline.cli.fetch", "trotline.cli.run", "trotline.cli.work"):
        monkeypatch.setattr(importlib.import_module(module_name), "WaitingChild", _Nobody)

    def make(command: str, *words: str, env: dict[str, str] | None = None) -> list[Any]:
        installed.clear()
        with monkeypatch.context() as patched:
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            arguments = [word for word in WORDS[command] if command != "push" or word != "urls.txt"]
            with pytest.raises(Taken) as taken:
                cli.trotline.main([command, *arguments, *words], standalone_mode=False)
        return _plain(list(taken.value.plan))

    yield make
    sys.modules.pop("shop", None)


class _Nobody:
    def abandon(self) -> None:
        return


def _plain(plan: Any) -> Any:
    """Comparable: spiders are loaded anew for every command."""
    return re.sub(" object at 0x[0-9a-f]+|/trotline-\\w+", "", repr(plan))


@pytest.mark.parametrize("command", sorted(USED))
@pytest.mark.parametrize("setting", sorted(NAMES))
def test_a_setting_has_an_effect_on_a_command_or_is_refused_or_named(
    plan_of, capsys: pytest.CaptureFixture[str], command: str, setting: str
):
    flag, variable = f"--{setting.replace('_', '-')}", f"TROTLINE_{setting.upper()}"
    # A mode alone says nothing: it is one of a proxy.
    beside = {"TROTLINE_PROXY": OTHER["proxy"]} if setting == "proxy_mode" else {}
    if setting in ("pools", "regions"):
        beside = {"TROTLINE_PROXIES": OTHER["proxies"]}
    if setting == "proxies" and command in ("try", "shell"):
        # The proxies of another file.
        beside = {"POOLED": "yes", "PROXY_LIST": "other.txt"}
    if command == "write":
        beside = {"TROTLINE_SINK": "jsonl:usual.jsonl"}
    usual = plan_of(command, env=beside)
    capsys.readouterr()

    told = plan_of(command, env={**beside, variable: OTHER[setting]})
    said = capsys.readouterr().err

    if setting in USED[command]:
        assert told != usual, f"{variable} changes nothing of what {command} does"
        assert "no effect" not in said
    else:
        assert told == usual
        places = ("frontier", "sink")
        *others, last = (name for name, used in USED.items() if setting in used)
        users = f"{', '.join(others)} and {last}" if others else last
        assert setting in places or f"{variable} has no effect on trotline {command}; it is for {users}" in said
    if flag in _flags(command):
        assert setting in USED[command], f"{command} takes {flag} and does nothing with it"
    else:
        # Refused: the command line knows no such option.
        assert cli.call([command, *WORDS[command], flag, OTHER[setting]]) == cli.CANNOT_START
        assert "No such option" in capsys.readouterr().err


def test_every_setting_is_in_the_table():
    assert set(OTHER) == set(NAMES)
    assert set().union(*USED.values()) == set(NAMES)


@pytest.mark.parametrize("command", sorted(LOOKING))
def test_commands_that_look_and_steer_take_places_and_nothing_else(command: str):
    """What is set for workers has no business there, and a note at every look would be one too many."""
    # `doctor` judges the settings themselves; the guard is part of them.
    places = {"--frontier", "--sink"} | ({"--allow", "--allow-private"} if command in ("doctor",) else set())
    taken = {f"--{name.replace('_', '-')}" for name in NAMES} & _flags(command)
    assert taken <= places | {"--proxy", "--proxy-mode", "--proxies"} if command == "doctor" else taken <= places


def _flags(command: str) -> set[str]:
    context = click.Context(cli.trotline)
    found = cli.trotline.get_command(context, command)
    assert found is not None
    return {flag for option in found.params for flag in option.opts if flag.startswith("--")}


def test_ending_at_a_limit_is_no_failure():
    from trotline.cli.run import CODES

    assert CODES[Ending.STOPPED_AT_LIMIT.value] == cli.FINISHED


LEFT_TO_THE_ENVIRONMENT = {
    "inbox", "max_bytes", "max_pages", "max_time", "metrics", "one_transaction", "pools", "prefetch", "processes",
    "proxy", "proxy_mode", "regions", "routes", "storage_patience", "visits",
}  # fmt: skip
"""Of workers, without an option of `fleet`: its workers inherit its environment and its settings file. `processes` has
no effect there (one each); the others are for all workers of a fleet alike, and seldom changed by hand."""


def test_an_option_of_a_worker_is_one_of_fleet_too_or_is_left_out_on_purpose():
    """A new setting of workers: an option in cli/fleet.py, or a name in this list."""
    known = {name: f"--{name.replace('_', '-')}" for name in NAMES}
    known |= {"pools": "--pool", "regions": "--region"}
    workers = {name for name, flag in known.items() if flag in _flags("work")}
    fleets = {name for name, flag in known.items() if flag in _flags("fleet")}

    assert fleets <= workers
    assert workers - fleets == LEFT_TO_THE_ENVIRONMENT
    assert LEFT_TO_THE_ENVIRONMENT - USED["fleet"] == {"processes"}
