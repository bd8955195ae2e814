"""What has no end is left, and what it costs until then is bounded."""

import itertools
import re

from tests.unit.rules.simulated_crawl import Crawled, Site, crawl, html, words
from trotline.rules.traps import TrapRules

RULES = TrapRules(same_text=300, soft_404=30, query_variants=500, years_back=20)
"""Smaller than the defaults, so that the proof is quick: what an endless site costs grows with them."""
BUDGET = RULES.same_text
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def closed(site: Site, *, pages: int, why: str, start: str = "/") -> Crawled:
    crawled = crawl(site, start, most=20 * BUDGET, rules=RULES)
    assert crawled.ended, "it would have gone on for ever"
    assert len(crawled.pages) <= pages
    assert crawled.refused.get(why, 0) > 0, crawled.refused
    return crawled


def _calendar(path: str, noise: str = "") -> str:
    year, month = map(int, re.findall(r"\d+", path)[:2]) if "calendar" in path else (2026, 3)
    places = [year * 12 + month - 1 + step for step in (-1, 1)]
    links = [f"/calendar/{place // 12:04}/{place % 12 + 1:02}" for place in places if place >= 0]
    return html(f"{_MONTHS[month - 1]} {year}: {' '.join(map(str, range(1, 31)))} no events{noise}", *links)


def test_a_calendar_without_events() -> None:
    closed(_calendar, pages=1_000, why="trap: far future date")


def test_a_calendar_that_says_how_long_each_page_took() -> None:
    clock = itertools.count(1)
    closed(
        lambda path: _calendar(path, f", made in 0.{next(clock) * 7919 % 10_007:05} s"),
        pages=1_000,
        why="trap: far future date",
    )


def test_a_counter_without_end() -> None:
    def site(path: str) -> str:
        number = int((re.findall(r"\d+", path) or [1])[0])
        return html(f"Entry {number}: nothing here yet", f"/entry/{number + 1}")

    closed(site, pages=BUDGET + 20, why="trap: same text")


def test_a_counter_that_branches_costs_no_more() -> None:
    def site(path: str) -> str:
        number = int((re.findall(r"\d+", path) or [1])[0])
        return html(f"Entry {number}: nothing here yet", *(f"/entry/{number * 40 + step}" for step in range(40)))

    closed(site, pages=BUDGET + 500, why="trap: same text")


def test_a_link_farm_of_one_page() -> None:
    def site(path: str) -> str:
        start = sum(map(ord, path)) * 7919
        links = [f"/{words(start + step, 4).replace(' ', '-')}" for step in range(30)]
        return html("The best offers of the whole net, for you, today, at prices that you will not believe", *links)

    # 26 ** 4 addresses; the farm of this test is finite, and would cost hundreds of thousands of pages.
    closed(site, pages=BUDGET + 500, why="trap: same text")


def test_soft_404s() -> None:
    def site(path: str) -> str:
        return html(f"<h1>Sorry</h1> The page {path} was not found.", *(f"{path.rstrip('/')}/{name}" for name in "xyz"))

    closed(site, pages=100, why="trap: soft 404")


def test_soft_404s_with_a_number_of_their_own() -> None:
    numbers = itertools.count(1)

    def site(path: str) -> str:
        number = next(numbers)
        links = (f"/gone/{words(number * 3 + step, 5).replace(' ', '-')}" for step in range(3))
        return html(f"<h1>Sorry</h1> The page was not found. Request {number * 7919 % 10_007}", *links)

    closed(site, pages=400, why="trap: soft 404")


def _site_of_fifteen(path: str, link: str) -> str:
    number = int((re.findall(r"/page-(\d+)", path) or [0])[0])
    return html(f"Chapter {words(number)}", *(link.format(f"page-{next_}") for next_ in range(15)))


def test_a_session_id_in_the_query_that_is_new_on_every_page() -> None:
    ids = itertools.count(1)

    def site(path: str) -> str:
        return _site_of_fifteen(path, f"/{{}}?sid={next(ids) * 0x9E3779B97F4A7C15:032x}")

    closed(site, pages=400, why="trap: session id")


def test_a_session_id_in_the_path_that_is_new_on_every_page() -> None:
    ids = itertools.count(1)

    def site(path: str) -> str:
        return _site_of_fifteen(path, f"/{next(ids) * 0x9E3779B97F4A7C15:032x}/{{}}")

    closed(site, pages=400, why="trap: session id")


def test_relative_links_that_nest_for_ever() -> None:
    def site(path: str) -> str:
        last = path.rstrip("/").rpartition("/")[2]
        number = sum(map(ord, last))
        return html(f"Guide {words(number)}", *(f"{path.rstrip('/')}/{name}/" for name in ("intro", "setup", "usage")))

    closed(site, pages=BUDGET + 100, why="trap: repeated segments")


def test_a_query_that_grows_with_every_click() -> None:
    def site(path: str) -> str:
        join = "&" if "?" in path else "?"
        return html(f"List {words(len(path))}", *(f"{path}{join}{name}=1" for name in "abcd"))

    crawled = crawl(site, "/list", most=20 * BUDGET, rules=RULES)
    assert crawled.ended
    assert len(crawled.pages) <= 1.6 * RULES.query_variants
    assert crawled.refused.get("trap: query variants", 0) > 0


def test_filters_that_multiply() -> None:
    def site(path: str) -> str:
        chosen = dict(pair.split("=") for pair in path.partition("?")[2].split("&") if pair)
        links = [
            "/list?" + "&".join(f"{n}={v}" for n, v in (chosen | {name: str(value)}).items())
            for name in ("color", "size", "brand", "sort", "view", "price")
            for value in range(12)
        ]
        return html(f"List {words(sum(map(ord, path)))} {len(path)}", *links)

    crawled = crawl(site, "/list", most=20 * BUDGET, rules=RULES)
    assert crawled.ended
    assert len(crawled.pages) <= 1.6 * RULES.query_variants
    assert crawled.refused["trap: query variants"] > 0
