"""robots.txt of every kind: what a site serves under that name, the crawl goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from tests.fuzz.strange import STILL_LINEAR, fuzzed, growth, mutated
from trotline.adapters.http.robots import RobotsTxt
from trotline.model.answer import Answer
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.ports.robots import Permission
from trotline.rules.robots import Prefilter

PAGE = "https://a.example/private/page?x=1"
FILES = [
    b"User-agent: *\nDisallow: /private/\nAllow: /private/page$\nCrawl-delay: 2\nSitemap: /sitemap.xml\n",
    b"\xef\xbb\xbfuser-agent:trotline\r\ndisallow /*?x=*\rDISALLOW: /%70rivate\n#\nUser-agent: b\nDisallow:\n",
    b"User-agent: *\nRequest-rate: 1/10 1200-1300\nVisit-time: 0600-0845\nCrawl-delay: 1e999\nDisallow: /a**$b$*\n",
]


class Served:
    """A site whose robots.txt is these bytes."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.body = body
        self.status = status

    async def fetch_start(self, task: Task, most: int, way: object = None) -> Answer:
        return Answer(url=task.url, status=self.status, body=self.body[:most])


async def ask(body: bytes, url: str = PAGE) -> Permission:
    robots = RobotsTxt(Served(body), agent="trotline", limits=Limits())  # type: ignore[arg-type]
    return await robots.ask(url)


@fuzzed
@given(st.one_of(st.binary(max_size=200), mutated(FILES)))
async def test_any_bytes_are_an_answer(body: bytes) -> None:
    permission = await ask(body)
    assert 0.0 <= permission.delay


@fuzzed
@given(mutated(FILES), st.text("/private?x=1*$%.", max_size=20).map(lambda rest: f"/{rest}"))
def test_the_quick_look_never_allows_what_the_matcher_forbids(body: bytes, path: str) -> None:
    text = body.decode("utf-8", "replace")
    quick = Prefilter(text)
    if quick.empty or quick.surely_allowed(path):
        assert Protego.parse(text).can_fetch(f"https://a.example{path}", "trotline")


@pytest.mark.parametrize("stars", ["*", "*a", "*a*", "a*b"])
def test_b58_wildcards_stay_linear(stars: str) -> None:
    rules = Protego.parse(f"User-agent: *\nDisallow: /{stars * 200}b$\n")
    assert growth(lambda url: rules.can_fetch(url, "t"), lambda n: "https://a.example/" + "a" * n, 2_000) < STILL_LINEAR

    def disallowing(n: int) -> Protego:
        return Protego.parse(f"User-agent: *\nDisallow: /{stars * n}b$\n")

    assert (
        growth(lambda rules: rules.can_fetch("https://a.example/" + "a" * 500, "t"), disallowing, 1_000) < STILL_LINEAR
    )


@pytest.mark.parametrize(
    "line",
    ["Disallow: /{}\n", "User-agent: x{}\n", "Allow: /*{}$\n", "{}\n", "x", "Sitemap: /{}\n", "Disallow: /%41{}\n"],
)
def test_b58_reading_grows_with_the_length_and_no_faster(line: str) -> None:
    def file(n: int) -> str:
        return "User-agent: *\n" + "".join(line.format(number) for number in range(n))

    assert growth(Protego.parse, file, 500) < STILL_LINEAR
    assert growth(Prefilter, file, 2_000) < STILL_LINEAR


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        ("\ufeffUser-agent: *\nDisallow: /private".encode(), False),
        ("User-agent: *\nDisallow: /private".encode("utf-16"), False),
        (b"<!DOCTYPE html><p>User-agent: *\nDisallow: /", True),
        (b"User-agent: *" * 200_000, True),
        (b"User-agent: *\nDisallow: /private\n" + b"#" * 100_000_000, False),
        (b"#" * 600_000 + b"\nUser-agent: *\nDisallow: /private\n", True),
        (b"", True),
    ],
    ids=["bom", "utf-16", "html", "no-newline", "100-mb", "rules-beyond-512-kib", "empty"],
)
async def test_b58_odd_files(body: bytes, allowed: bool) -> None:
    assert (await ask(body)).allowed is allowed
