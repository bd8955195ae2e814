"""Promises of secrets: they can be sent, and nothing else can be done with them by accident."""

import copy
import json
import os
import pickle
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from trotline import Page, Secret, Spider
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.config.settings import read
from trotline.errors import SettingsError, SpiderRefused
from trotline.model import secret
from trotline.model.job import LaneRules
from trotline.model.limits import Limits
from trotline.model.secret import SecretMissing, without_secrets
from trotline.model.task import Task
from trotline.rules.secret_scope import SecretScope
from trotline.spider.seeds import FileSeeds
from trotline.testing import visit

CANARY = "canary-7f3e9b"


def written(file: Path, text: str = CANARY, mode: int = 0o600) -> Path:
    file.write_text(text)
    file.chmod(mode)
    return file


def secret_spider(**settings: Any) -> Spider:
    return Spider("shop", **settings)


SHOW: dict[str, Callable[[Secret], object]] = {
    "str": str,
    "repr": repr,
    "format": lambda secret: f"{secret} {secret!r} {secret:>40}",
    "percent": lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
    "in a list": lambda secret: str([secret, {"a": secret}]),
    "dir and slots": lambda secret: [getattr(secret, name) for name in dir(secret) if name.startswith("__doc")],
    "a copy": lambda secret: repr((copy.copy(secret), copy.deepcopy({"a": secret}))),
    "an error": lambda secret: traceback.format_exception(ValueError(secret)),
}


@pytest.mark.parametrize("show", SHOW.values(), ids=SHOW)
def test_a_secret_is_never_shown(show: Callable[[Secret], object]) -> None:
    assert CANARY not in str(show(Secret(CANARY)))


@pytest.mark.parametrize(
    "write",
    [json.dumps, msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins, pickle.dumps, bytes, list],
)
def test_a_secret_is_not_written(write: Callable[[object], object]) -> None:
    with pytest.raises(TypeError) as caught:
        write(Secret(CANARY))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_secret_says_where_it_is_from_and_gives_its_value_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", CANARY)
    file = written(tmp_path / "token", CANARY + "\n")

    assert (repr(Secret.env("SHOP_TOKEN")), Secret.env("SHOP_TOKEN").reveal()) == ("Secret(env:SHOP_TOKEN)", CANARY)
    assert (repr(Secret.file(file)), Secret.file(file).reveal()) == (f"Secret(file:{file})", CANARY)
    assert Secret.parse(f"file:{file}").reveal() == CANARY


def test_a_secret_that_is_not_there_is_said_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    with pytest.raises(SecretMissing, match="environment variable SHOP_TOKEN is not set"):
        Secret.env("SHOP_TOKEN")
    with pytest.raises(SecretMissing, match="token cannot be read: No such file"):
        Secret.file(tmp_path / "token")
    with pytest.raises(SecretMissing, match="is empty"):
        Secret.file(written(tmp_path / "empty", "\n"))
    with pytest.raises(SecretMissing, match="larger than"):
        Secret.file(written(tmp_path / "large", "x" * 70_000))
    (tmp_path / "binary").touch(0o600)
    (tmp_path / "binary").write_bytes(b"\xff\xfe" + CANARY.encode())
    with pytest.raises(SecretMissing, match="is not UTF-8") as caught:
        Secret.file(tmp_path / "binary")
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_file_that_others_can_open_holds_no_secret(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SecretMissing, match="chmod 600"):
        Secret.file(written(tmp_path / "token", mode=mode))


@pytest.mark.parametrize("mode", [0o444, 0o440, 0o644, 0o400])
def test_a_mounted_secret_may_be_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    """Compose mounts the files of the host as they are, and a Kubernetes volume is readable by a group."""
    monkeypatch.setattr(secret, "MOUNTED", str(tmp_path / "secrets"))
    (tmp_path / "secrets").mkdir()
    assert Secret.file(written(tmp_path / "secrets" / "token", mode=mode)).reveal() == CANARY


def test_a_mounted_secret_that_others_can_write_is_refused_and_so_is_a_path_that_leaves_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret, "MOUNTED", str(tmp_path / "secrets"))
    (tmp_path / "secrets").mkdir()
    for mode in (0o664, 0o646, 0o666):
        with pytest.raises(SecretMissing, match="chmod 600"):
            Secret.file(written(tmp_path / "secrets" / f"{mode:o}", mode=mode))
    written(tmp_path / "token", mode=0o444)
    for place in ("secrets/../token", "secrets-of-others/../token", "token"):
        with pytest.raises(SecretMissing, match=r"chmod 600|No such file"):
            Secret.file(tmp_path / place)


def test_the_folder_of_mounted_secrets_is_that_of_the_container_runtimes() -> None:
    assert secret.is_private("/run/secrets/frontier_url", 0o100444)
    assert not secret.is_private("/run/secrets-of-others/token", 0o100444)
    assert not secret.is_private("/etc/token", 0o100444)


def test_something_else_than_a_file_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing):
        Secret.file(tmp_path)
    with pytest.raises(SecretMissing, match="not a regular file"):
        Secret.file("/dev/null")


def test_known_secrets_are_taken_out_of_any_text() -> None:
    Secret("Bearer canary/one two=")
    told = without_secrets("GET /?t=two%3D with Bearer canary/one two= and two= alone")
    assert "canary/one" not in told
    Secret("abc")
    assert without_secrets("abc") == "abc", "what is that short stands in innocent words"


# Spiders with secrets


def test_headers_that_tell_by_their_name_are_secret_and_others_are_not() -> None:
    spider = secret_spider(
        hosts=["shop.example"],
        headers={"Authorization": CANARY, "X-Api-Key": "a", "X-Shop-Token": "b", "Accept-Language": "en"},
        cookies={"session": CANARY},
    )
    assert spider.headers == {"Accept-Language": "en"}
    assert set(spider.secret_headers) == {"Authorization", "X-Api-Key", "X-Shop-Token"}
    assert CANARY not in repr((vars(spider), spider.secret_headers, spider.cookies))


def test_anything_given_as_a_secret_is_one() -> None:
    spider = secret_spider(hosts=["shop.example"], headers={"X-Colour": Secret(CANARY)})
    assert (spider.headers, list(spider.secret_headers)) == ({}, ["X-Colour"])


@pytest.mark.parametrize("settings", [{"headers": {"x-api-key": CANARY}}, {"cookies": {"session": Secret(CANARY)}}])
@pytest.mark.parametrize("hosts", [(), ("*",)])
def test_secrets_for_nobody_knows_which_hosts_are_refused(settings: dict[str, Any], hosts: tuple[str, ...]) -> None:
    try:
        spider = secret_spider(**settings, hosts=hosts)
    except SpiderRefused:
        return

    @spider.page(seeds=FileSeeds("urls.txt"))
    def page(page: Page) -> None: ...

    with pytest.raises(SpiderRefused, match="does not say for which hosts") as caught:
        _ = spider.secret_scope
    assert "hosts=[" in caught.value.hint
    assert CANARY not in str(caught.value)


def test_without_hosts_secrets_belong_to_the_seeds_and_stay_on_https_if_those_do() -> None:
    spider = secret_spider(headers={"authorization": CANARY})

    @spider.page(seeds=["https://shop.example:8443/", "https://api.example/"])
    def page(page: Page) -> None: ...

    assert spider.secret_scope == SecretScope(frozenset({"shop.example:8443", "api.example"}), secure=True)


@pytest.mark.parametrize(
    ("origin", "may"),
    [
        ("https://shop.example", True),
        ("https://www.shop.example", True),
        ("http://shop.example", False),
        ("https://shop.example.evil.example", False),
        ("https://evilshop.example", False),
        ("https://evil.example", False),
        ("https://shop.example@evil.example", False),
        ("https://api.example:8443", True),
        ("https://api.example", False),
    ],
)
def test_secrets_go_to_own_hosts_alone(origin: str, may: bool) -> None:
    assert SecretScope(frozenset({"shop.example", "api.example:8443"}), secure=True).admits(origin) is may


def test_who_owns_no_host_gives_no_secret_to_anybody() -> None:
    assert not SecretScope().admits("https://shop.example")


def test_no_message_about_a_header_shows_its_value() -> None:
    for value in (f"{CANARY}\r\nx: y", Secret(f"{CANARY}\n")):
        with pytest.raises(SpiderRefused) as caught:
            secret_spider(hosts=["shop.example"], headers={"Authorization": value})
        assert CANARY not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(SettingsError) as refused:
        HttpFetcher(Limits(), user_agent="x", spider="s", secret_headers={"a b": Secret(CANARY)})
    assert CANARY not in "".join(traceback.format_exception(refused.value))


async def test_the_fetcher_adds_secret_headers_for_own_hosts_and_the_tasks_own_word_wins() -> None:
    fetcher = HttpFetcher(
        Limits(),
        user_agent="x",
        spider="s",
        secret_headers={"Authorization": Secret(CANARY)},
        secret_scope=SecretScope(frozenset({"shop.example"})),
    )
    own, other = "https://shop.example/a", "https://other.example/a"
    assert fetcher._own_headers(Task(url=own, route="r")) == {"Authorization": CANARY}
    assert fetcher._own_headers(Task(url=other, route="r")) == {}
    mine = Task(url=own, route="r", headers=(("authorization", "mine"),))
    assert fetcher._own_headers(mine) == {"authorization": "mine"}
    await fetcher.close()


def test_a_task_takes_no_secret_for_it_is_stored() -> None:
    spider = secret_spider(hosts=["shop.example"])

    @spider.page
    def page(page: Page) -> None: ...

    for fields in ({"headers": {"x": Secret(CANARY)}}, {"form": {"x": Secret(CANARY)}}, {"json": Secret(CANARY)}):
        with pytest.raises(TypeError) as caught:
            page.task("https://shop.example/", **fields)
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_record_takes_no_secret() -> None:
    spider = secret_spider()

    @spider.page
    def page(page: Page) -> Any:
        yield {"token": Secret(CANARY)}

    harvest = visit(page, b"<p>", url="https://shop.example/")
    assert harvest.records == []
    assert CANARY not in repr(harvest)


async def test_the_frontiers_file_is_its_owners_alone(tmp_path: Path) -> None:
    jobs = SqliteJobs(str(tmp_path / "made" / "frontier.db"))
    await jobs.start("shop", LaneRules())
    modes = {file.name: file.stat().st_mode & 0o777 for file in list_of(tmp_path / "made")}
    await jobs.close()
    assert set(modes.values()) == {0o600}, modes


def list_of(folder: Path) -> list[Path]:
    return list(folder.iterdir())


# Settings


def test_settings_can_be_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "sqlite:elsewhere.db")
    file = written(tmp_path / "place", "rows.jsonl\n")
    (tmp_path / "trotline.toml").write_text(f'frontier = "env:PLACE"\nsink = "file:{file}"\n')
    settings = read({}, {}, tmp_path)
    assert (settings.frontier, settings.sink) == ("sqlite:elsewhere.db", "jsonl:rows.jsonl")
    assert read({"slots": "env:PLACE"} | {"slots": 4}, {}, tmp_path).slots == 4


def test_a_reference_that_holds_nonsense_is_not_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", f"gopher://anna:{CANARY}@db")
    for name in ("frontier", "sink", "slots"):
        with pytest.raises(SettingsError, match=f"the value of env:PLACE is not a valid {name}") as caught:
            read({name: "env:PLACE"}, {}, tmp_path)
        assert CANARY not in "".join(traceback.format_exception(caught.value))
    monkeypatch.delenv("PLACE")
    with pytest.raises(SettingsError, match="PLACE is not set"):
        read({"sink": "env:PLACE"}, dict(os.environ), tmp_path)


def test_the_logins_of_ten_thousand_proxies_are_hidden_as_one_is() -> None:
    started = time.perf_counter()
    for number in range(10_000):
        Secret(f"pass-{number:05}-word")
    for number in (0, 4_711, 9_999):
        said = without_secrets(f"proxy said pass-{number:05}-word and {quote(f'pass-{number:05}-word', safe='')} no")
        assert said == "proxy said (hidden) and (hidden) no"
    assert without_secrets("a line about https://shop.example/p/17") == "a line about https://shop.example/p/17"
    # With a sort for each secret it takes minutes.
    assert time.perf_counter() - started < 10


def test_a_rotated_file_is_read_again_for_a_new_connection_and_its_value_is_hidden(tmp_path: Path) -> None:
    """The value stays when the file is away, as while it is replaced, or readable by others."""
    file = written(tmp_path / "password", "before-rotation")
    given = Secret.parse(f"file:{file}")
    written(file, "after-rotation\n")

    assert given.reveal() == "before-rotation"
    assert given.current() == given.reveal() == "after-rotation"
    assert "rotation" not in without_secrets("before-rotation, after-rotation")
    file.unlink()
    assert given.current() == "after-rotation"
    written(file, "readable-by-all", mode=0o644)
    assert given.current() == "after-rotation"
