"""Traps: what never ends is caught and reported, and ordinary sites pass whole."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.time import from_iso
from trotline.rules.session_ids import without_session
from trotline.rules.traps import TrapDetector, TrapRules, cycles
from trotline.rules.url_pattern_counts import VariantCounter
from trotline.rules.urls import Address, UrlRules, read

NOW = from_iso("2026-03-01T00:00:00Z")


def at(path: str) -> Address:
    address = read(f"http://a.example{path}", UrlRules(max_length=8_192))
    assert isinstance(address, Address), address
    return address


def passed(paths: list[str], rules: TrapRules | None = None, now: float = NOW, **page: bool) -> int:
    watch = TrapDetector(rules)
    return sum(watch.why(at(path), now, **page) is None for path in paths)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/a/b/a/b/a/b/", "trap: repeated groups"),
        ("/x/a/b/c/a/b/c/a/b/c", "trap: repeated groups"),
        ("/a/a/a/a", "trap: repeated segments"),
        ("/a//////b", "trap: repeated segments"),
        ("/" + "/".join(map(str, range(31))), "trap: deep path"),
        ("/calendar/2040/05/", "trap: far future date"),
        ("/events/2040-05-17", "trap: far future date"),
        ("/events/1510/05", "trap: far past date"),
        ("/?year=2040&month=5", "trap: far future date"),
        ("/list?event_date=2040-05-17", "trap: far future date"),
    ],
)
def test_these_are_traps_on_a_page_that_repeats_others(path: str, why: str) -> None:
    watch = TrapDetector()

    assert watch.why(at(path), NOW, alike=True, repeats=True) == why
    assert watch.caught == {why: (1, f"http://a.example{path}")}


@pytest.mark.parametrize(
    "path", ["/a/b/a/b/a/b/", "/a/a/a/a", "/calendar/2040/05/", "/events/1510/05", "/?year=2040&month=5"]
)
def test_an_address_alone_proves_nothing(path: str) -> None:
    assert TrapDetector().why(at(path), NOW) is None


@pytest.mark.parametrize(
    ("path", "why"), [("/a" * 10, "trap: repeated segments"), ("/a/b" * 7, "trap: repeated groups")]
)
def test_a_path_that_repeats_itself_without_end_needs_no_other_proof(path: str, why: str) -> None:
    assert TrapDetector().why(at(path), NOW) == why


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a/b/a/b",
        "/a/a/a",
        "/2020/01/01/01",
        "/docs/v2/docs/api/v2",
        "/calendar/2031/05/",
        "/calendar/1950/05/",
        "/p/2077/11",
        "/category/2050/12",
        "/projection/2050-12",
        "/blog/cyberpunk-2077-01",
        "/antiques?year=1750",
        "/news/2026/03/01/the-story",
        "/show?session=spring",
        "/show?sid=17",
        "/" + "/".join(map(str, range(30))),
    ],
)
def test_these_are_ordinary(path: str) -> None:
    assert TrapDetector().why(at(path), NOW, alike=True, repeats=True) is None


def test_without_a_real_clock_no_date_is_far() -> None:
    assert TrapDetector().why(at("/calendar/2040/05/"), alike=True) is None
    assert TrapDetector().why(at("/calendar/2040/05/"), now=12.0, alike=True) is None


def test_a_thousand_pages_of_a_list_pass() -> None:
    pages = [f"/list?page={number}" for number in range(1, 1_001)]
    assert passed(pages) == 1_000


def test_ids_in_the_path_or_in_one_parameter_pass() -> None:
    assert passed([f"/p/{number}" for number in range(5_000)]) == 5_000
    assert passed([f"/item?id={number}" for number in range(5_000)]) == 5_000
    assert passed([f"/index.php?route=product&product_id={number}" for number in range(5_000)]) == 5_000
    assert passed([f"/topic?t{number}" for number in range(5_000)]) == 5_000


def test_lists_of_lists_pass_however_many_there_are() -> None:
    rules = TrapRules(query_variants=50)
    grid = [f"/list?cat={cat}&page={page}" for cat in range(40) for page in range(40)]
    assert passed(grid, rules) == 1_600
    threads = [f"/topic?f={t % 7}&t={t}&start={page}" for t in range(300) for page in (0, 20, 40)]
    assert passed(threads, rules) == 900


def test_filters_that_multiply_are_stopped() -> None:
    rules = TrapRules(query_variants=1_000)
    filters = [
        f"/list?color={color}&size={size}&sort={sort}"
        for color in range(50)
        for size in range(20)
        for sort in "abcdefgh"
    ]
    assert 1_000 <= passed(filters, rules) <= 1_800
    flags = ["/list?" + "&".join(f"f{bit}=1" for bit in range(12) if number >> bit & 1) for number in range(1, 4_096)]
    assert 1_000 <= passed(flags, rules) <= 1_200
    assert passed(filters) == len(filters), "eight thousand are not endless"


def test_even_one_parameter_ends_somewhere_if_the_spider_says_so() -> None:
    rules = TrapRules(query_variants=10, query_values=50)
    assert 50 <= passed([f"/item?id={number}" for number in range(1_000)], rules) <= 200


def test_the_same_address_again_uses_up_nothing() -> None:
    rules = TrapRules(query_variants=5)
    watch = TrapDetector(rules)
    for _ in range(50):
        assert watch.why(at("/list?a=1&b=2")) is None
    assert watch.why(at("/list?a=2&b=3")) is None


def test_one_path_does_not_use_up_the_share_of_another() -> None:
    rules = TrapRules(query_variants=2, query_values=2)
    watch = TrapDetector(rules)
    for number in range(50):
        watch.why(at(f"/a?x={number}&y={number}"))
    assert watch.why(at("/a?x=99&y=99")) == "trap: query values"
    assert watch.why(at("/b?x=99&y=99")) is None


def test_an_endless_calendar_is_stopped_even_without_a_clock() -> None:
    rules = TrapRules(calendar_pages=100)
    months = [f"/{year}/{month:02}/" for year in range(2026, 2126) for month in range(1, 13)]
    assert 100 <= passed(months, rules, now=0) <= 130
    asked = [f"/?year={year}&month={month}" for year in range(2026, 2126) for month in range(1, 13)]
    assert 100 <= passed(asked, rules, now=0) <= 130
    stories = [f"/{year}/{month:02}/story-{year}-{month}" for year in range(2026, 2126) for month in range(1, 13)]
    assert passed(stories, rules, now=0) == 1_200


FORMS = ["/a?sid={}", "/a?x=1&session_id={}", "/a;sessionid={}?x=1", "/(S({}))/a", "/a?y=1&MYSESSID={}&z=2", "/{}/a"]
IDS = [f"{number:032x}" for number in range(100)]


def read_under(watch: TrapDetector, paths: list[str], texts: list[int]) -> None:
    for path, text in zip(paths, texts, strict=True):
        pattern = without_session(at(path).identity)
        assert pattern is not None, path
        watch.sessions.read("a.example", pattern, text)


@pytest.mark.parametrize("form", FORMS)
def test_one_page_under_many_session_ids_is_visited_a_few_times_once_pages_have_confirmed_it(form: str) -> None:
    watch, paths = TrapDetector(), [form.format(text) for text in IDS]
    assert all(watch.why(at(path)) is None for path in paths[:50]), "it may be an id of the site's own"

    read_under(watch, paths[:20], [7] * 20)
    # Two ids can share a bit of the map: somewhat more may pass, never fewer.
    assert 2 <= sum(watch.why(at(path)) is None for path in paths[50:]) <= 4
    assert watch.caught["trap: session id"][0] >= 46


@pytest.mark.parametrize("form", FORMS)
def test_an_id_under_which_every_page_is_another_is_no_session(form: str) -> None:
    watch, paths = TrapDetector(), [form.format(text) for text in IDS]
    read_under(watch, paths[:20], list(range(20)))
    read_under(watch, ["/other?sid=" + text for text in IDS[:20]], [7] * 20)

    assert all(watch.why(at(path)) is None for path in paths)


def test_pages_of_one_session_all_pass() -> None:
    session = "0123456789abcdef0123456789abcdef"
    assert passed([f"/a/{number}?sid={session}" for number in range(2_000)]) == 2_000
    assert passed([f"/a?page={number}&sid={session}" for number in range(900)]) == 900


def test_every_rule_can_be_switched_off() -> None:
    off = TrapRules(
        segments=0, same_segment=0, cycles=0, query_variants=0, query_values=0, calendar_pages=0, years_ahead=0,
        years_back=0, session_variants=0, same_text=0, soft_404=0,
    )  # fmt: skip
    paths = ["/a/b" * 40, "/calendar/2400/01", *(f"/a?x={number}&y={number}" for number in range(3_000))]
    assert passed(paths, off) == len(paths)
    with pytest.raises(ValueError, match="write 0 to switch it off"):
        TrapRules(cycles=-1)


def test_asking_what_it_would_say_changes_nothing() -> None:
    watch = TrapDetector(TrapRules(query_variants=1, query_values=1))
    for number in range(10):
        assert watch.would(at(f"/a?x={number}&y={number}&z=1"), NOW) is None
    assert watch.would(at("/a" * 10), NOW) == "trap: repeated segments"
    assert watch.caught == {}
    assert watch.why(at("/a?x=1&y=1&z=1"), NOW) is None
    assert watch.would(at("/a?w=2"), NOW) == "trap: query variants"


def test_caught_counts_and_keeps_the_first_example() -> None:
    watch = TrapDetector()
    for number in range(3):
        watch.why(at(f"/a/a/a/a/{number}"), repeats=True)
    assert watch.caught == {"trap: repeated segments": (3, "http://a.example/a/a/a/a/0")}


@pytest.mark.slow("tracemalloc looks at every allocation")
def test_memory_stays_bounded_whatever_comes() -> None:
    watch = TrapDetector()
    session = "0123456789abcdef"
    tracemalloc.start()
    for number in range(9_000):
        watch.why(at(f"/p{number}?x={number}&y={number}&sid={session}{number:016}"))
        watch.why(at(f"/p{number}/2026/05/"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16_000_000


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_cycles_counts_what_a_slow_count_counts(segments: list[str]) -> None:
    slow = 1
    for width in range(2, len(segments) + 1):
        for start in range(len(segments)):
            group = segments[start : start + width]
            times = 1
            while len(group) == width and segments[start + times * width : start + (times + 1) * width] == group:
                times += 1
            slow = max(slow, times)
    assert cycles(segments) == slow


@given(st.integers(1, 50), st.lists(st.text(), unique=True, max_size=60))
def test_a_share_is_never_smaller_than_promised(size: int, items: list[str]) -> None:
    shares = VariantCounter(size, keys=2, why="x")
    for item in items[:size]:
        assert not shares.is_full("p")
        shares.add("p", item)


@given(st.text())
def test_no_path_upsets_the_watch(path: str) -> None:
    address = read("http://a.example/" + path)
    if isinstance(address, Address):
        TrapDetector().why(address, NOW)
