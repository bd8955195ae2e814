"""What a page says never reaches a screen or a path as a command: B64 and B65 of the fault list."""

import json
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.cli.formatting import json_line, safe
from trotline.cli.main import call


def files_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


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
