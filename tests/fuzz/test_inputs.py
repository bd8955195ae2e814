"""What comes in by wire, files and configuration: a refusal says so in its own type, and nothing else is raised."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp.http_writer import _serialize_headers
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from tests.fuzz.strange import fuzzed, mutated
from trotline import Page, Spider
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.config import settings
from trotline.config.setting_types import MOST_SLOTS
from trotline.errors import SettingsError, SpiderRefused
from trotline.model import task_json
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.rules.verdicts import LONGEST_REST, retry_after
from trotline.spider.seeds import read_lines

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.one_of(st.sampled_from([*task_json.seed_names(), "task_id"]), st.text(max_size=6)), JSON, max_size=6
)

TASK = Task(
    url="https://a.example/", route="r", key="k", headers=(("A", "b"),), body=b"\0\xff", meta={"a": [1, None, 2.5]}
)
TASKS = [task_json.encode(TASK), task_json.encode(Task(url="https://a.example/", route="r"))]


@fuzzed
@given(st.one_of(st.binary(max_size=80), mutated(TASKS), st.binary(max_size=80).map(lambda rest: b"\1" + rest)))
def test_bytes_are_a_task_or_undecodable(raw: bytes) -> None:
    try:
        task = task_json.decode(raw)
    except task_json.Undecodable as error:
        assert str(error)
    else:
        assert task_json.decode(task_json.encode(task)) == task


@pytest.mark.parametrize("depth", [100, 1_000, 100_000])
def test_b60_a_task_of_any_depth_is_read_or_undecodable(depth: int) -> None:
    for opening in (b"\x91", b"\x81\xa1t"):
        with pytest.raises(task_json.Undecodable):
            task_json.decode(b"\1" + opening * depth)


@fuzzed
@given(FIELDS)
def test_a_json_object_is_a_task_or_undecodable(fields: dict[str, Any]) -> None:
    try:
        task = task_json.from_seed(fields)
    except task_json.Undecodable as error:
        assert str(error)
    else:
        task_json.to_seed(task)
        task_json.decode(task_json.encode(task))


def route() -> Any:
    spider = Spider("fuzz")

    @spider.page
    def page(page: Page) -> None: ...

    return page


LINES = st.one_of(
    st.text(max_size=60),
    FIELDS.map(json.dumps),
    mutated(
        [b'{"url": "https://a.example/", "job_type": "page", "headers": {"A": "b"}, "created_at": "2026-01-01"}']
    ).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
)


@fuzzed
@given(st.lists(LINES, max_size=3))
def test_lines_are_seeds_or_refused(lines: list[str]) -> None:
    try:
        tasks = list(read_lines(route(), lines, "lines"))
    except SpiderRefused as error:
        assert "line " in str(error)
    else:
        assert all(isinstance(task, Task) for task in tasks)


@pytest.mark.parametrize("text", ['{"url":', "[", '{"meta":{"a":[' * 2])
def test_b60_a_seed_of_any_depth_is_refused(text: str) -> None:
    with pytest.raises(SpiderRefused, match="line 1"):
        list(read_lines(route(), ['{"meta":' + text * 100_000], "lines"))


VALUES = st.one_of(
    st.text(max_size=20).map(json.dumps),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ["true", "[]", "{}", "[[1], 'x']", "2026-01-01", "12:00:00", "'1h30m'", "'sqlite:'", "'\\u0000'", "nan"]
    ),
)
SETTINGS = st.dictionaries(st.one_of(st.sampled_from(settings.NAMES), st.text("ab-_", max_size=4)), VALUES, max_size=5)
TOML = st.one_of(
    SETTINGS.map(lambda table: "\n".join(f"{key} = {value}" for key, value in table.items()).encode("utf-8", "ignore")),
    mutated([b'sink = "out.jsonl"\nslots = 8\nmax-time = "1h"\n[a.b]\nc = [1, {d = 2}]\n']),
    st.binary(max_size=60),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings")


@fuzzed
@given(body=TOML, flags=st.dictionaries(st.sampled_from(settings.NAMES), st.text(max_size=12), max_size=2))
def test_a_settings_file_is_understood_or_refused(folder: Path, body: bytes, flags: dict[str, str]) -> None:
    (folder / "trotline.toml").write_bytes(body)
    try:
        found = settings.read(flags, {}, folder)
    except SettingsError as error:
        assert str(error)
    else:
        assert 1 <= found.slots <= MOST_SLOTS


@fuzzed
@given(st.text(max_size=12), st.text(max_size=20))
def test_b44_a_header_stays_on_its_line_or_is_refused(name: str, value: str) -> None:
    try:
        HttpFetcher(Limits(), user_agent="t", spider="s", headers={name: value})
    except SettingsError:
        return
    try:
        sent = _serialize_headers("GET / HTTP/1.1", CIMultiDict({name: value}))
    except ValueError:
        return
    assert sent.count(b"\r\n") == 3
    assert sent.count(b"\n") == 3
    assert b"\0" not in sent


@fuzzed
@given(
    st.one_of(
        st.text(max_size=30),
        st.integers().map(str),
        st.floats().map(str),
        mutated([b"Wed, 21 Oct 2026 07:28:00 GMT", b"21 Oct 26 07:28:00 -9999", b"120"]).map(
            lambda raw: raw.decode("latin-1")
        ),
    ),
    st.floats(0, 1e11),
)
def test_any_retry_after_is_a_sensible_wait_or_none(value: str, now: float) -> None:
    wait = retry_after(value, now)
    assert wait is None or 0 <= wait <= LONGEST_REST
