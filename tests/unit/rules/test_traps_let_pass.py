"""Real structure is crawled whole: paginations, calendars with data, variants, filters, forums, trees, galleries."""

import re
from datetime import date, timedelta
from zlib import crc32

import pytest

from tests.unit.rules.simulated_crawl import Site, crawl, html, words
from trotline.rules.traps import TrapRules


def numbered(path: str, first: int = 1) -> int:
    found = re.findall(r"\d+", path)
    return int(found[-1]) if found else first


def whole(site: Site, pages: int, start: str = "/", rules: TrapRules | None = None) -> None:
    crawled = crawl(site, start, rules=rules)
    assert crawled.refused == {}
    assert (len(crawled.pages), len(set(crawled.pages))) == (pages, pages)


@pytest.mark.parametrize(
    "form",
    ["/list-{}.html", "/list?page={}", "/list/page/{}", "/list?offset={}&limit=20", "/list?sort=new&p={}&view=all"],
)
@pytest.mark.parametrize("data", ["words", "numbers", "none"])
def test_next_links_to_the_last_of_500_pages(form: str, data: str) -> None:
    def site(path: str) -> str:
        number = 1 if path == "/" else numbered(path.replace("limit=20", ""))
        text = {"words": words(number), "numbers": f"price {number * 37 % 1009}", "none": "another page"}[data]
        return html(f"<h1>Page {number}</h1>{text}", *([form.format(number + 1)] if number < 500 else []))

    whole(site, 500)


def test_cursors_that_say_nothing() -> None:
    def token(number: int) -> str:
        return f"{number * 0x9E3779B97F4A7C15 & (2**128 - 1):032x}"

    tokens = {token(number): number for number in range(500)}

    def site(path: str) -> str:
        number = tokens.get(path.partition("cursor=")[2], 0)
        links = [f"/feed?cursor={token(number + 1)}"] if number < 499 else []
        return html(words(number), *links)

    whole(site, 500)


def test_a_calendar_with_events_in_some_months_and_decades_without() -> None:
    def site(path: str) -> str | None:
        if path == "/":
            return html("Our events", "/calendar/2026/03")
        if story := re.fullmatch(r"/event/(\d+)/(\d+)", path):
            return html(f"Concert {words(int(story[1]) * 12 + int(story[2]))}")
        year, month = map(int, re.findall(r"\d+", path))
        busy = year % 20 == 0 or month == 7
        links = [
            f"/calendar/{y}/{m:02}" for y, m in (_month(year, month, -1), _month(year, month, 1)) if 1900 <= y <= 2031
        ]
        return html(
            f"<h1>{month} {year}</h1> {words(year) if busy else 'no events'}",
            *links,
            *([f"/event/{year}/{month}"] if busy else []),
        )

    months = 12 * (2031 - 1900 + 1)
    busy = sum(1 for year in range(1900, 2032) for month in range(1, 13) if year % 20 == 0 or month == 7)
    whole(site, 1 + months + busy)


def _month(year: int, month: int, step: int) -> tuple[int, int]:
    place = year * 12 + month - 1 + step
    return place // 12, place % 12 + 1


def test_rates_of_every_day_in_nothing_but_numbers() -> None:
    first = date(1996, 1, 1)

    def site(path: str) -> str:
        day = first if path == "/" else date.fromisoformat(path.rpartition("/")[2])
        number = (day - first).days
        links = [f"/archive/{day + timedelta(days=1)}"] if number < 2_500 else []
        return html(f"{day}: {1 + number * 7919 % 10_000 / 10_000:.4f}", *links)

    whole(site, 2_501, rules=TrapRules(same_text=300))


def test_four_thousand_product_variants_that_differ_in_digits_and_link_to_each_other() -> None:
    def site(path: str) -> str:
        if path == "/":
            return html("Screws, by size and length", "/p/1")
        number = numbered(path)
        links = [f"/p/{next_}" for next_ in (number * 2, number * 2 + 1) if next_ <= 4_000]
        return html(f"Screw M{number % 12} x {number % 97}, item {number}, {number % 53}.{number % 100:02} EUR", *links)

    whole(site, 4_001)


def test_four_thousand_pages_that_differ_in_their_own_number_alone() -> None:
    def site(path: str) -> str:
        number = numbered(path, 1)
        links = [f"/page/{next_}" for next_ in (number * 2, number * 2 + 1) if next_ <= 4_000]
        return html(f"<h1>Page {number}</h1> This is the page with the number {number}.", *links)

    whole(site, 4_000)


def test_a_faceted_listing_with_all_its_combinations() -> None:
    def site(path: str) -> str:
        if item := re.fullmatch(r"/item/(\d+)", path):
            return html(words(int(item[1])))
        chosen = dict(pair.split("=") for pair in path.partition("?")[2].split("&") if pair)
        links = [_list(chosen | {"color": str(c)}) for c in range(10)] + [
            _list(chosen | {"size": str(s)}) for s in range(8)
        ]
        links += [_list(chosen | {"sort": s}) for s in ("price", "name", "new")]
        links += [_list(chosen | {"page": str(p)}) for p in range(2, 5)]
        items = [hash_ for hash_ in range(300) if str(hash_ % 10) == chosen.get("color", str(hash_ % 10))]
        return html(f"List {sorted(chosen.items())}", *links, *(f"/item/{item}" for item in items[:40]))

    crawled = crawl(site, "/list")
    assert crawled.refused == {}
    assert sum(path.startswith("/list") for path in crawled.pages) == 11 * 9 * 4 * 4


def _list(chosen: dict[str, str]) -> str:
    return "/list?" + "&".join(f"{name}={value}" for name, value in chosen.items())


def test_a_forum_with_more_threads_than_combinations_may_have() -> None:
    def site(path: str) -> str:
        numbers = {name: int(value) for name, value in re.findall(r"(\w)=(\d+)", path)}
        forum, topic, start = numbers.get("f"), numbers.get("t"), numbers.get("s", 0)
        if forum is None:
            return html("All forums", *(f"/forum?f={number}" for number in range(20)))
        if topic is None:
            return html(f"Forum {words(forum)}", *(f"/topic?f={forum}&t={forum * 30 + n}&s=0" for n in range(30)))
        links = [f"/topic?f={forum}&t={topic}&s={start + 20}"] if start < 60 else []
        return html(f"Thread {words(topic)}: {words(topic * 80 + start)}", *links)

    whole(site, 1 + 20 + 20 * 30 * 4, rules=TrapRules(query_variants=500))


def test_a_tree_of_packages_whose_folders_have_the_same_names() -> None:
    def site(path: str) -> str:
        depth = path.count("node_modules")
        links = [f"{path}node_modules/{name}-{depth}/" for name in ("pad", "glob")] if depth < 7 else []
        size = crc32(path.encode())
        return html(f"Index: LICENSE {size} README.md {size * 3} index.js package.json {size % 97}", *links)

    whole(site, 2**8 - 1)


def test_a_scanned_book_whose_pages_are_pictures() -> None:
    def site(path: str) -> str:
        number = numbered(path, 1)
        picture = f'<img src="/scans/{number:05}.png">'
        return html(f"Page {number} of 600", *([f"/book/{number + 1}"] if number < 600 else []), more=picture)

    whole(site, 600, rules=TrapRules(same_text=100))


def test_articles_whose_id_looks_like_a_session() -> None:
    ids = [f"{number * 0x9E3779B97F4A7C15F39CC060 & (2**128 - 1):032x}" for number in range(1, 400)]

    def site(path: str) -> str:
        if path == "/":
            return html("News", *(f"/article?sid={one}" for one in ids))
        return html(f"Story {words(ids.index(path.partition('=')[2]))}")

    whole(site, 400)


def test_commits_of_a_repository_whose_files_rarely_change() -> None:
    ids = [f"{number * 0x9E3779B97F4A7C15F39CC060 & (2**160 - 1):040x}" for number in range(1, 200)]

    def site(path: str) -> str:
        if path == "/":
            return html("Log", *(f"/commit/{one}/" for one in ids))
        place = ids.index(path.split("/")[2])
        if path.endswith("/README"):
            return html("Readme: how to build it, how to test it, how to install it, and whom to ask. " * 2)
        return html(f"Commit: {words(place)}", f"/commit/{ids[place]}/README", f"/commit/{ids[place]}/NEWS")

    crawled = crawl(site)
    assert {path for path in crawled.pages if path.count("/") == 3 and path.endswith("/")} == {
        f"/commit/{one}/" for one in ids
    }
    assert all(count for why, count in crawled.refused.items() if why == "trap: session id")
