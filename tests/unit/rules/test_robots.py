"""The quick look at a robots.txt never allows what the real matcher forbids."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from trotline.adapters.http.robots import _VERSION, MOST_TEXT, _packed, _SiteReply, _unpacked
from trotline.rules.robots import Prefilter, for_agent

PATTERNS = st.text("/ab?=*$.%é", max_size=8)
NAMES = st.sampled_from(
    ["Disallow: ", "disallow:", "Disallow ", "Disallow\t", "Dissalow : ", "Allow: ", " DISALLOW:  "]
)
LINES = st.lists(st.one_of(st.tuples(NAMES, PATTERNS).map("".join), st.just("# note"), st.just("User-agent: x")))
PATHS = st.text("/ab?=.%é;", max_size=10).map(lambda rest: f"/{rest}")


@given(LINES, PATHS)
def test_what_is_surely_allowed_is_allowed(lines: list[str], path: str) -> None:
    text = "\n".join(["User-agent: *", *lines])
    if Prefilter(text).surely_allowed(path):
        assert Protego.parse(text).can_fetch(f"https://a.example{path}", "trotline")


@given(LINES, PATHS)
def test_when_nothing_is_disallowed_everything_is_allowed(lines: list[str], path: str) -> None:
    text = "\n".join(["User-agent: *", *lines])
    if Prefilter(text).empty:
        assert Protego.parse(text).can_fetch(f"https://a.example{path}", "trotline")


def test_ordinary_pages_need_no_closer_look() -> None:
    quick = Prefilter("User-agent: *\nDisallow: /admin/\nDisallow: /*?sort=\nDisallow: /cart$\n")
    assert quick.surely_allowed("/p/tea?x=1")
    assert not quick.surely_allowed("/admin/x")
    assert not quick.surely_allowed("/p?sort=1")
    assert not quick.surely_allowed("/cart")
    assert not quick.surely_allowed("/p/%61")
    assert not quick.empty


@pytest.mark.parametrize(
    ("line", "agent", "ours"),
    [
        ("User-agent: FooBot", "FooBot/1.0", True),
        ("User-agent: Foo Bar", "Foo/1", True),
        ("user-agent:FooBot/2.1 (+http://foo.example) # ours", "FooBot", True),
        ("USER AGENT: foo-bot_x 7", "foo-bot_x", True),
        ("user  agent foo", "foo", True),
        ("useragent foo", "foo", True),
        ("User-agent foo:bar", "foo", True),
        ("  User-agent : Foo Bar\r", "Mozilla/5.0 (compatible; foo/1)", True),
        ("User-agent: *", "foo", True),
        ("User-agent: * everybody", "foo", True),
        ("User-agent: *foo", "foo", True),
        ("User-agent: 360Spider", "360Spider", True),
        ("User-agent:", "foo", False),
        ("User-agent: **", "foo", False),
        ("User-agent: other", "foo", False),
        ("User-agent: oo", "foo", False),
        ("Users-agent: foo", "foo", False),
        ("Disallow: /user-agent: a b", "foo", False),
    ],
)
def test_an_agent_is_named_by_its_product_alone(line: str, agent: str, ours: bool) -> None:
    rules = Protego.parse(for_agent(f"{line}\nDisallow: /x\n", agent))

    assert rules.can_fetch("https://a.example/x", agent) is not ours


AGENTS = st.sampled_from(["*", "x", "tea", "tea bot", "teabot", "bot", "Tea*", "", "tea/2"])
GROUPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["User-agent: ", "useragent ", "user agent:", "USER-AGENT:"]), AGENTS).map("".join),
        st.tuples(st.sampled_from(["Disallow: ", "Allow: "]), st.sampled_from(["/", "/a", "/a/b", ""])).map("".join),
        st.sampled_from(["", "# note", "Sitemap: /s.xml", "Crawl-delay: 3", "Nonsense: 1"]),
    ),
    max_size=12,
)


@given(GROUPS, st.sampled_from(["tea/1.0", "Mozilla/5.0 (compatible; Teabot/1.0)"]))
def test_what_concerns_others_changes_nothing_for_us(lines: list[str], agent: str) -> None:
    """The same answers as the matcher gives for the whole file, where names are single tokens already."""
    whole = "\n".join(lines).replace("tea bot", "tea").replace("tea/2", "tea").replace("Tea*", "tea")
    ours, theirs = Protego.parse(for_agent("\n".join(lines), agent)), Protego.parse(whole)

    for path in ("/", "/a", "/a/b"):
        url = f"https://a.example{path}"
        assert ours.can_fetch(url, agent) == theirs.can_fetch(url, agent), path
    assert ours.crawl_delay(agent) == theirs.crawl_delay(agent)
    assert list(ours.sitemaps) == list(theirs.sitemaps)


def test_a_file_names_any_number_of_agents_and_the_matcher_keeps_two() -> None:
    text = "\n".join([*(f"User-agent: a{chr(97 + n % 26)}{'b' * n}" for n in range(200)), "Disallow: /x"])

    assert len(Protego.parse(for_agent(text, "trotline"))._user_agents) <= 2


def test_a_shared_robots_txt_is_unpacked_only_as_far_as_one_may_be_large() -> None:
    told = _SiteReply(200, b"User-agent: *")
    assert _unpacked(_packed(told)) == told
    assert _unpacked(_packed(_SiteReply(200, bytes(MOST_TEXT)))) is None
    assert _unpacked(_VERSION + zlib.compress(b"nonsense")) is None
