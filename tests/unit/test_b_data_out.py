"""Bad input on its way out and in configuration: B62 to B65, B71, B73, B74, B77 and B78 of the fault list.

B66 (labels of metrics) has nothing to test yet: there are no metrics. B70 is in tests/contract/test_hostile_queue.py.
"""

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline import Limits, Page, Spider
from trotline.adapters.files.evidence import EvidenceFolder
from trotline.adapters.files.export import to_csv
from trotline.cli.main import call
from trotline.cli.text import json_line, safe
from trotline.commands.export import Wanted, export
from trotline.config.backends import open_sink
from trotline.config.settings import LARGEST_FILE, read
from trotline.errors import SettingsError, SinkUnreachable, SpiderRefused
from trotline.model import task_json
from trotline.model.record import Record
from trotline.model.row import Row
from trotline.ports.frontier import BEAT, DEAD_AFTER

NAMES = [
    'a"; DROP TABLE records; --',
    "__class__",
    "x" * 10_000,
    "Title",
    "title",
    "",
    "a'b",
    "$.x",
    "a\\b",
    "\x00",
    "é",
]
PATHS = ["../../x", "/tmp/x", "CON", "x" * 300, "a\0b", "..", ".", "a/b", "~root", "-rf", "C:\\x", "\u202etxt.exe"]  # noqa: S108


def record(key: str = "k", kind: str = "product", **data: Any) -> Record:
    return Record(kind=kind, key=key, data=data, url="https://shop.example/", site="shop", seen_at=1.0)


async def store(place: str, *records: Record) -> None:
    sink = open_sink(place)
    await sink.write(list(records))
    if finish := getattr(sink, "finish", None):
        await finish()
    await sink.close()


def files_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


# B62, B63, B64: names and values of fields


async def test_b62_names_of_fields_are_data_in_every_sink(tmp_path: Path) -> None:
    data = dict.fromkeys(NAMES, "value")
    db, lines, table = tmp_path / "rows.db", tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    for place in (f"sqlite:{db}", f"jsonl:{lines}", f"csv:{table}"):
        await store(place, record(**data))

    with closing(sqlite3.connect(db)) as stored:
        [(text,)] = stored.execute("SELECT data FROM records").fetchall()
        seen = stored.execute("SELECT title, title_2 FROM product").fetchall()
    assert json.loads(text) == data
    assert seen == [("value", "value")], "two names that differ by case are two columns"
    assert json.loads(lines.read_text()) == data
    [row] = csv.DictReader(io.StringIO(table.read_text()))
    assert set(row.values()) == {"value"}


@pytest.mark.parametrize("kind", [*NAMES[:4], "records", "sqlite_master", "a;b"])
async def test_b62_a_kind_is_data_too(tmp_path: Path, kind: str) -> None:
    await store(f"sqlite:{tmp_path / 'rows.db'}", record(kind=kind, a=1), record(kind="product", a=2))
    with closing(sqlite3.connect(tmp_path / "rows.db")) as stored:
        assert stored.execute("SELECT count(*) FROM records").fetchone() == (2,)
        assert stored.execute("SELECT a FROM product").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", '"=1', "'=cmd|' /C calc'!A0"]
)
def test_b63_no_cell_of_a_table_is_a_formula(text: str) -> None:
    rows = [Row(site="s", kind="k", key="1", url="u", seen_at=1.0, data=json.dumps({text: text}).encode())]
    out = io.BytesIO()
    to_csv(rows, out)
    [head, cells] = csv.reader(io.StringIO(out.getvalue().decode("utf-8-sig"), newline=""))
    assert [cell[0] for cell in head + cells] == ["'", "'"]


@pytest.mark.parametrize("sink", ["rows.db", "rows.jsonl", "rows.csv"])
async def test_b64_what_a_page_says_is_never_a_path(tmp_path: Path, sink: str) -> None:
    scheme = "sqlite" if sink.endswith(".db") else sink.rpartition(".")[2]
    names = [Record(kind=path, key=path, data={path: path}, url=path, site=path, seen_at=1.0) for path in PATHS]
    (tmp_path / "in").mkdir()
    await store(f"{scheme}:{tmp_path / 'in' / sink}", *names)

    assert {
        file for file in files_in(tmp_path) if not file.startswith((f"in/{sink}", f"in/.trotline/{sink}."))
    } == set()


def test_b64_evidence_is_named_after_its_content(tmp_path: Path) -> None:
    folder = EvidenceFolder(tmp_path / "evidence")
    kept = {folder.keep(path.encode()) for path in PATHS}
    assert all(len(name) == 32 and set(name) <= set("0123456789abcdef") for name in kept)
    assert len(files_in(tmp_path)) == len(PATHS)


async def test_b64_a_link_in_the_place_of_a_file_that_we_name_is_not_followed(tmp_path: Path) -> None:
    await store(f"sqlite:{tmp_path / 'rows.db'}", record(a=1))
    victim, ours = tmp_path / "victim", tmp_path / f".rows.csv.{os.getpid()}.new"
    victim.write_text("mine")
    ours.symlink_to(victim)
    with pytest.raises(SinkUnreachable):
        export(f"sqlite:{tmp_path / 'rows.db'}", Wanted(form="csv"), tmp_path / "rows.csv")

    assert victim.read_text() == "mine"


# B65: what a page says, on a screen

TITLE = (
    '<script>alert(1)</script>"><img onerror=x> \x1b[2J\x1b]0;pwned\x07\x9b31m \u202e\u2066evil\u2069 \u2028\x85\x7f'
)
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", retries=0, robots=False)

@shop.page(seeds=["http://HOST/", "http://HOST/bad"])
def page(page: Page):
    if "bad" in page.url:
        raise ValueError(page.title)
    yield {"name": page.title}
    yield {"name": {1, 2}, "title": page.title, page.title[:90]: object()}
    yield page.task("/\\u202e" + page.title[:50])
"""


class Hostile(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"<title>{TITLE.replace('<', '&lt;')}{'A' * 1_000_000}</title>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Disposition", 'attachment; filename="../../../tmp/evil"')
        self.send_header("X-Note", "\x1b[31mred\x9b")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quietly."""


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Crawled(NamedTuple):
    folder: Path
    said: str


@pytest.fixture(scope="module")
def crawled(place: str, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """A folder with the spider, and what its run said. A process of its own: it has children."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SPIDER.replace("HOST", place))
    words = [sys.executable, "-m", "trotline.cli", "run", "shop.py", "--allow-private"]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    return Crawled(folder, ran.stdout + ran.stderr)


Say = Callable[..., str]


@pytest.fixture
def say(crawled: Crawled, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    """Run a command in that folder; what it said."""
    monkeypatch.chdir(crawled.folder)

    def made(*words: str) -> str:
        call(words)
        told = capfd.readouterr()
        return told.out + told.err

    return made


def harmless(told: str, longest: int) -> bool:
    lines = told.split("\n")
    assert [line[:400] for line in lines if len(line) > longest] == []
    assert [(line[:400], hex(ord(c))) for line in lines for c in line if unicodedata.category(c) in HIDDEN] == []
    return len(lines) > 1


def test_b65_nothing_that_a_page_says_moves_the_cursor(say: Say, crawled: Crawled) -> None:
    assert harmless(crawled.said, 400)
    dead = say("dead", "shop", "--json").splitlines()
    assert {json.loads(line)["why"].partition(":")[0] for line in dead} == {"handler", "bad record"}
    for words in (("status", "shop"), ("dead", "shop"), ("doctor", "shop.py"), ("try", "shop.py", "--allow-private")):
        assert harmless(say(*words), 600), words
    for grave in map(json.loads, dead):
        assert harmless(say("dead", "shop", grave["id"]), 2100)


def test_b65_json_is_one_line_each_and_says_the_same(say: Say) -> None:
    for words in (("status", "--json"), ("dead", "shop", "--json"), ("dead", "shop", "--export", "-")):
        told = say(*words)
        assert harmless(told, 100_000), words
        assert all(json.loads(line) for line in told.splitlines())
    [tried] = say("try", "shop.py", "--allow-private", "--json").splitlines()
    assert harmless(tried + "\n", 10_000_000)
    assert "\u202e" in json.loads(tried)["title"], "escaped, not lost"


def test_b64_a_saved_page_goes_where_the_author_says_whatever_the_site_calls_it(say: Say, crawled: Crawled) -> None:
    before = files_in(crawled.folder)
    say("try", "shop.py", "--allow-private", "--save", "page.html")
    assert files_in(crawled.folder) - before == {"page.html"}
    assert not Path("/tmp/evil").exists()  # noqa: S108


def test_b65_errors_are_as_harmless_as_the_rest(say: Say) -> None:
    for words in (("run", f"{TITLE}.py"), ("status", TITLE), (TITLE,), ("try", "shop.py", TITLE), ("dead", TITLE)):
        assert harmless(say(*words), 2100)


@given(st.text())
def test_b65_any_text_becomes_one_line_of_at_most_300(text: str) -> None:
    shown = safe(text)
    assert len(shown) <= 300
    assert not any(unicodedata.category(char) in HIDDEN for char in shown)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_b65_any_text_survives_its_json_line(text: str) -> None:
    line = json_line({"title": text})
    assert json.loads(line) == {"title": text}
    assert not any(unicodedata.category(char) in HIDDEN for char in line)


# B71, B73, B74: names and numbers of a spider


@pytest.mark.parametrize(
    "name", ["", "*", "a*", "a\nb", "a}", "{a}", "a b", "a/b", "..", "a:b", "é", "x" * 65, 7, None]
)
def test_b71_a_name_that_could_be_a_pattern_a_path_or_a_line_is_refused(name: Any) -> None:
    with pytest.raises(SpiderRefused, match="cannot be a spider's name"):
        Spider(name)
    spider = Spider("shop")
    if name:
        with pytest.raises(SpiderRefused, match="cannot be a route's name"):
            spider.page(name=name)(lambda page: None)


@pytest.mark.parametrize("pace", [0, -1, 0.5, float("nan"), "0/s", "-1/s", "nan/s", "inf/s", "1e9/s", "200000/s", ""])
def test_b73_a_pace_that_is_none_is_refused_with_the_range(pace: Any) -> None:
    with pytest.raises(SpiderRefused) as caught:
        Spider("shop", pace=pace)
    assert "write it like" in str(caught.value) or "the slowest is" in str(caught.value)


@pytest.mark.parametrize("pace", ["1/s", "0.001/s", "1/d", "100000/s"])
def test_b73_a_pace_in_range_is_taken(pace: str) -> None:
    assert Spider("shop", pace=pace).rules.default.rate.per_second > 0


def test_b74_the_lease_outlives_two_heartbeats() -> None:
    assert DEAD_AFTER >= 2 * BEAT


@pytest.mark.parametrize(
    "settings",
    [
        {"retries": -1},
        {"retries": 10**6},
        {"concurrency": 0},
        {"concurrency": 10**6},
        {"max_pages": 0},
        {"max_depth": -1},
    ],
)
def test_b74_numbers_that_cannot_work_are_refused_with_the_rule(settings: dict[str, int]) -> None:
    with pytest.raises(SpiderRefused) as caught:
        Spider("shop", **settings)  # type: ignore[arg-type]
    assert "an integer" in caught.value.hint


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_b74_a_limit_is_finite_and_0_is_not_unlimited(limit: float) -> None:
    for name in Limits.__struct_fields__:
        with pytest.raises(ValueError, match=name):
            Limits(**{name: limit})


@pytest.mark.parametrize(
    "flags", [{"slots": 0}, {"slots": 10**6}, {"processes": 0}, {"grace": "0s"}, {"max_time": "-1s"}]
)
def test_b74_settings_that_cannot_work_are_refused(flags: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        read(flags, {}, tmp_path)


# B77, B78: settings files and times

FILES: dict[str, bytes] = {
    "100 MB would be too much": b"# " + b"x" * LARGEST_FILE,
    "a bomb of nesting": b"slots = " + b"[" * 50_000,
    "tables without end": b"[" + b"a." * 5_000 + b"a]\nx = 1",
    "not text": b"\xff\xfe\x00slots = 1",
    "an unknown key": b"slotz = 4",
    "an unknown table": b"[aliases]\na = 1",
    "a table for a number": b"[slots]\na = 1",
    "a list for a text": b'sink = ["a.db"]',
    "a YAML bomb": b"a: &a [x, x]\nb: &b [*a, *a]",
    "a number for a place": b"frontier = 7",
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_b77_a_hostile_settings_file_is_refused_in_plain_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trotline.toml").write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read({}, {}, tmp_path)
    assert "trotline.toml" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "content", [b"[tool]\ntrotline = 5", b"# tool.trotline\ntool = 5", b"# tool.trotline" * LARGEST_FILE]
)
def test_b77_a_hostile_pyproject_is_refused_or_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    try:
        read({}, {}, tmp_path)
    except SettingsError as error:
        assert "pyproject.toml" in str(error)


@given(st.binary(max_size=300))
def test_b77_any_settings_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("b77")
    (folder / "trotline.toml").write_bytes(content)
    try:
        read({}, {}, folder)
    except SettingsError as error:
        assert "trotline.toml" in str(error)


@pytest.mark.parametrize("text", ["2026-03-01T12:00:00", "2026-03-01", "yesterday", "0000-01-01T00:00:00Z", "", "12"])
def test_b78_a_time_without_a_zone_or_that_is_none_is_refused(text: str) -> None:
    for field in ("not_before", "created_at"):
        with pytest.raises(task_json.Undecodable, match=field):
            task_json.from_seed({"url": "https://shop.example/", field: text})


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-03-01T12:00:00+14:00"])
def test_b78_a_time_with_a_zone_is_that_moment(text: str) -> None:
    told = task_json.to_seed(task_json.from_seed({"url": "https://shop.example/", "not_before": text}))["not_before"]
    assert datetime.fromisoformat(told) == datetime.fromisoformat(text)


@pytest.mark.parametrize("moment", [datetime(2026, 3, 1), float("nan"), float("inf")])
def test_b78_a_draft_refuses_what_is_no_moment(moment: Any) -> None:
    spider = Spider("shop")

    @spider.page
    def page(page: Page) -> None: ...

    with pytest.raises(ValueError, match="not_before"):
        page.task("https://shop.example/", not_before=moment)
