"""What limits and traps left out: named, counted, with an example and the setting that did it."""

import gzip

import pytest

from trotline.frontier.gate import TOO_MANY
from trotline.model.job import Progress
from trotline.model.limits import Limits
from trotline.rules import near_duplicate_pages, scope, sitemaps, traps, urls
from trotline.rules.limit_cuts import cut_by, cuts, is_cut, own_limits, unwanted
from trotline.rules.sitemaps import SitemapFile, parse
from trotline.rules.traps import TrapDetector, TrapRules

NOW = 1_790_000_000.0
"""In 2026."""


def books(tallies: dict[str, int], examples: dict[str, str] | None = None, dead: int = 0) -> Progress:
    return Progress(waiting=0, leased=0, done=9, dead=dead, tallies=tallies, examples=examples or {})


def test_a_cut_says_what_how_many_where_and_which_setting():
    [cut] = cuts(
        books({"links refused: depth": 37}, {"links refused: depth": "https://a.example/p/21"}), {"max_depth": 20}
    )

    assert (cut.what, cut.count, cut.example) == ("links deeper than max_depth=20", 37, "https://a.example/p/21")
    assert (cut.setting, cut.advice, cut.own) == ("max_depth", "raise max_depth", True)


def test_what_no_limit_did_is_no_cut():
    tallies = {"ok": 9, "links known": 5, "links refused: host": 3, "dropped: gone: 404": 2, "retry: broken: 503": 1}

    assert cuts(books(tallies | {"dropped: refused: robots.txt": 4, "dead: broken: 503": 1}, dead=1), {}) == []


REASONS = [
    scope.DEPTH, TOO_MANY, urls.TOO_LONG.why, traps.DEEP, traps.REPEATED, traps.CYCLES,
    traps.CALENDAR, traps.AHEAD, traps.BACK, traps.VARIANTS, traps.VALUES, traps.SESSION,
    near_duplicate_pages.SAME_TEXT, near_duplicate_pages.NOT_FOUND,
]  # fmt: skip


@pytest.mark.parametrize("reason", REASONS)
def test_every_limit_of_the_gate_is_a_cut_with_a_setting_that_exists(reason: str):
    cut = cut_by(reason, {})

    assert cut is not None
    assert is_cut(f"links refused: {reason}")
    name = cut.setting.rpartition("(")[2].removesuffix(")")
    assert name == "max_depth" or name in (*Limits.__struct_fields__, *TrapRules.__struct_fields__)


@pytest.mark.parametrize(
    ("why", "what"),
    [
        ("body over 10 MiB", "pages with a body over 10 MiB"),
        ("body over 10 MiB (announced)", "pages with a body over 10 MiB"),
        ("decoded body over 32 MiB", "pages with a decompressed body over 32 MiB"),
        ("body expands more than 100:1", "pages that decompress to more than 100 times their size"),
        ("head over the limit of 65536 bytes", "answers with headers over 64 KiB"),
        ("head with more than 128 fields", "answers with more than 128 header fields"),
        ("trailers and framing over the limit of 65536 bytes", "answers with trailers and framing over 64 KiB"),
        ("content-encodings: 3, the limit is 2", "pages with more than 2 content-encodings"),
        ("redirect to a URL over 2083 characters (302)", "pages that redirect to a URL over 2,083 characters"),
        ("more than 10 redirects", "pages behind more than 10 redirects"),
    ],
)
def test_pages_refused_by_a_limit_are_cuts_while_they_are_dead(why: str, what: str):
    tallies = {f"dead: refused: {why}": 2}

    assert [cut.what for cut in cuts(books(tallies, dead=2), {})] == [what]
    assert cuts(books(tallies, dead=0), {}) == [], "they were revived"


@pytest.mark.parametrize(
    ("rules", "paths", "setting"),
    [
        (TrapRules(segments=2), ["/a/b/c"], "segments"),
        (TrapRules(same_segment=1), ["/a/a/b/a/a"], "same_segment"),
        (TrapRules(cycles=1), ["/a/b/a/b/a/b/a/b"], "cycles"),
        (TrapRules(years_ahead=2), ["/calendar/2040/05/"], "years_ahead"),
        (TrapRules(years_back=20), ["/calendar/1990/05/"], "years_back"),
        (TrapRules(calendar_pages=1), ["/on/2026/05/", "/on/2026/06/"], "calendar_pages"),
        (TrapRules(query_variants=2), [f"/q?a={n % 3}&b={n % 5}&c={n % 7}" for n in range(100)], "query_variants"),
        (TrapRules(query_variants=2, query_values=5), [f"/l?page={n}" for n in range(20)], "query_values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_trap_names_the_rule_that_refused(rules: TrapRules, paths: list[str], setting: str):
    watch, own = TrapDetector(rules), own_limits(None, None, rules)
    reasons = [watch.why(_at(path), NOW, alike=True) for path in paths]

    [last] = {reason for reason in reasons if reason is not None} or {""}
    cut = cut_by(last, own)
    assert cut is not None
    assert (cut.setting, cut.own) == (f"TrapRules({setting})", True)


def _at(path: str) -> urls.Address:
    address = urls.read(f"http://a.example{path}")
    assert isinstance(address, urls.Address)
    return address


def test_one_limit_is_one_line_whatever_its_reasons_say():
    [cut] = cuts(
        books({"dead: refused: body over 10 MiB": 2, "dead: refused: body over 10 MiB (announced)": 3}, dead=5), {}
    )

    assert cut.count == 5


def test_the_most_come_first():
    found = cuts(books({"links refused: depth": 1, "links refused: too long": 5}), {"max_depth": 1})

    assert [cut.count for cut in found] == [5, 1]


def test_only_what_the_spider_did_not_set_itself_is_unwanted():
    own = own_limits(3, Limits(links=10), TrapRules(same_text=7))
    assert own == {"max_depth": 3, "links": 10, "same_text": 7}

    wanted = books({f"links refused: {why}": 1 for why in (scope.DEPTH, TOO_MANY, near_duplicate_pages.SAME_TEXT)})
    assert not unwanted(cuts(wanted, own))
    assert unwanted(cuts(wanted, own_limits(3, None, None)))


def test_limits_written_out_as_they_are_anyway_are_not_the_spiders_own():
    assert own_limits(None, Limits(), TrapRules()) == {}


def lot(inside: str, before: str = "", after: str = "") -> bytes:
    first = "<url><loc>https://a.example/1</loc></url>"
    return f"<urlset {before}>{first}{inside}{first}{after}</urlset>".encode()


NAMES = [f'a{number}=""' for number in range(sitemaps.NAMES)]
MANY_NAMES = lot("".join(f"<a {' '.join(NAMES[place : place + 10_000])}/>" for place in range(0, len(NAMES), 10_000)))
MEMBERS = gzip.compress(b"https://a.example/1\n", mtime=0) + gzip.compress(b"\n", mtime=0) * 100
BOUNDS = [
    (lot("<a>" * 40, after="</a>" * 40), "elements inside each other, read up to there"),
    (MANY_NAMES, "names of elements and attributes, read up to there"),
    (lot("<a/>" * 400), "elements for each of sitemap_urls=10, read up to there"),
    (MEMBERS, "gzip members, read up to there"),
    (lot(" " * 1_100_000), "a tag or text over 1 MiB, read only for plain <loc>"),
    (lot(f"<url><loc>https://a.example/{'x' * 9_000}</loc></url>"), "URLs of a sitemap longer than 8,192 characters"),
    (b"https://a.example/1\nhttps://a.example/%b\n" % (b"x" * 9_000), "URLs of a sitemap longer than 8,192"),
    (lot(f"<url><loc>https://a.example/{'x' * 20_000}</loc>&</url>"), "URLs of a sitemap longer than 8,192 characters"),
]


@pytest.mark.parametrize(("body", "told"), BOUNDS, ids=[told[:20] for _, told in BOUNDS])
def test_every_bound_of_a_sitemap_is_a_cut_that_says_what_was_not_read(body: bytes, told: str):
    own: dict[str, float] = {"sitemap_urls": 10}
    found: SitemapFile = parse(body, Limits(sitemap_urls=10))

    [name] = found.cuts
    assert found.urls, "what came before the bound counts"
    cut = cut_by(name, own)
    assert cut is not None and told in cut.what, cut
    assert is_cut(f"links refused: {name}")
    assert (cut.setting and cut.advice == f"raise {cut.setting}") or "a fixed limit" in cut.advice
    assert unwanted([cut]) or cut.setting == "Limits(sitemap_urls)"


def test_attributes_that_all_have_other_names_are_read_to_the_end():
    entries = (f'<url><loc a{n}="" xmlns:x{n}="y">https://a.example/{n}</loc></url>' for n in range(3_000))
    found = parse(f"<urlset>{''.join(entries)}</urlset>".encode(), Limits())

    assert (len(found.urls), found.cuts) == (3_000, {})
