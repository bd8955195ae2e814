"""URL identity: what is one page, what is two, and that reading never fails."""

import can_ada
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trotline.model.task import Task
from trotline.rules.urls import Address, Refusal, UrlRules, fingerprint, join_all, read, resolve, task_identity

RULES = UrlRules()


def address(url: str, rules: UrlRules = RULES) -> Address:
    answer = read(url, rules)
    assert isinstance(answer, Address), answer
    return answer


def identity(url: str, rules: UrlRules = RULES) -> str:
    return address(url, rules).identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP://Shop.Example/A", "http://shop.example/A"),
        ("http://shop.example:80/", "http://shop.example/"),
        ("https://shop.example:443/", "https://shop.example/"),
        ("http://shop.example./x", "http://shop.example/x"),
        ("http://shop.example.:8080/x", "http://shop.example:8080/x"),
        ("http://shop.example", "http://shop.example/"),
        ("http://münchen.example/", "http://xn--mnchen-3ya.example/"),
        ("http://shop.example/a/./b/../c", "http://shop.example/a/c"),
        ("http://shop.example/a/%2e%2E/c", "http://shop.example/c"),
        ("http://shop.example/%7euser", "http://shop.example/~user"),
        ("http://shop.example/%c3%a9", "http://shop.example/é"),
        ("http://shop.example/a#top", "http://shop.example/a"),
        ("http://shop.example/a?", "http://shop.example/a"),
        ("http://shop.example/a?&&", "http://shop.example/a"),
        ("http://shop.example/a?b=2&a=1", "http://shop.example/a?a=1&b=2"),
        ("http://shop.example/a?%61=1", "http://shop.example/a?a=1"),
        ("http://shop.example/a?utm_source=x&id=1&gclid=2", "http://shop.example/a?id=1"),
        ("http://shop.example/a?UTM_Source=x&FBCLID=y", "http://shop.example/a"),
        ("http://shop.example/a;jsessionid=A1?x=1", "http://shop.example/a;jsessionid=B2?x=1"),
        ("http://shop.example/a?PHPSESSID=1", "http://shop.example/a"),
        ("http://shop.example\\a\\b", "http://shop.example/a/b"),
        ("  http://shop.exa\nmple/a\t ", "http://shop.example/a"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
    ],
)
def test_these_are_one_page(one: str, other: str) -> None:
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://shop.example/a", "https://shop.example/a"),
        ("http://shop.example/a", "http://shop.example/A"),
        ("http://shop.example/a", "http://shop.example/a/"),
        ("http://shop.example/a", "http://www.shop.example/a"),
        ("http://shop.example/a", "http://shop.example:8080/a"),
        ("http://shop.example/a%2Fb", "http://shop.example/a/b"),
        ("http://shop.example/a//b", "http://shop.example/a/b"),
        ("http://shop.example/?a=1&a=2", "http://shop.example/?a=2&a=1"),
        ("http://shop.example/?a", "http://shop.example/?a="),
        ("http://shop.example/?a=x+y", "http://shop.example/?a=x%20y"),
        ("http://shop.example/?a=1%262", "http://shop.example/?a=1&2"),
        ("http://shop.example/?ref=a", "http://shop.example/"),
    ],
)
def test_these_are_two_pages(one: str, other: str) -> None:
    assert identity(one) != identity(other)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "not a URL"),
        ("shop.example/a", "not a URL"),
        ("http://", "not a URL"),
        ("http://shop.example:99999/", "not a URL"),
        ("http://xn--a/", "not a URL"),
        ("ftp://shop.example/a", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("mailto:a@b.example", "scheme"),
        ("http://me:secret@shop.example/", "user-info"),
        ("http://me@shop.example/", "user-info"),
        ("http://shop.example/" + "a" * 2_083, "too long"),
        ("data:text/html," + "a" * 1_000_000, "too long"),
        ("http://./", "bad host"),
        ("http://a..b/", "bad host"),
        ("http://a../", "bad host"),
        ("http://.a/", "bad host"),
        ("http://" + "a" * 64 + ".example/", "bad host"),
        ("http://" + "a." * 200 + "example/", "bad host"),
    ],
)
def test_what_is_no_address_says_why(url: str, why: str) -> None:
    assert read(url, RULES) == Refusal(why)


def test_what_is_fetched_keeps_everything_but_the_fragment() -> None:
    found = address("HTTPS://Shop.Example:8443/%7ea/;jsessionid=1?utm_source=x&b=2&a=1#top")

    assert found.url == "https://shop.example:8443/%7ea/;jsessionid=1?utm_source=x&b=2&a=1"
    assert found.identity == "https://shop.example:8443/~a/?a=1&b=2"
    assert found.host == "shop.example"
    assert found.lane == "shop.example:8443"


def test_a_lane_names_the_port_only_if_it_is_unusual() -> None:
    assert address("http://shop.example:80/").lane == "shop.example"
    assert address("http://shop.example.:81/").lane == "shop.example:81"
    assert address("https://[::1]:8080/").lane == "[::1]:8080"
    assert address("https://[::1]:8080/").host == "[::1]"


def test_rules_can_be_changed() -> None:
    assert identity("http://a.example/x?ref=1", UrlRules(tracking=["Ref"])) == "http://a.example/x"
    assert identity("http://a.example/x?gclid=1", UrlRules(tracking=())) == "http://a.example/x?gclid=1"
    assert identity("http://a.example/x?my_b=1", UrlRules(tracking_prefixes=("MY_",))) == "http://a.example/x"
    assert identity("http://a.example/?b=1&a=2", UrlRules(sort_query=False)) == "http://a.example/?b=1&a=2"
    strip = UrlRules(trailing_slash="strip")
    assert identity("http://a.example/x/", strip) == identity("http://a.example/x", strip) == "http://a.example/x"
    assert identity("http://a.example//", strip) == "http://a.example/"


def test_wrong_rules_say_what_to_write() -> None:
    with pytest.raises(ValueError, match='write "keep" or "strip"'):
        UrlRules(trailing_slash="maybe")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="write a list of names"):
        UrlRules(tracking="ref")


HREFS = [
    "", "#f", "?q", "?", "?q#f", "/x", "/x#f", "x", "x/y", "./x", "../x", "../../../x", "..", ".",
    "//h.example/x", "///h/x", "/\\h/x", "\\x", "\\\\h\\x", "\\/h/x", "http:x", "https:x", "http:/x", "https:/x",
    "http://h/x", "HTTPS://H/x", "Https:x", "https:", "http:", "https:#f", "https:?q", "https:\\\\h\\x",
    "https:///h", "http:foo:bar", "https:foo:bar", "https:\\x", " x ", "\tx", "x\n/y", "/\t/h/x", "ht\ntp://h/x",
    "x #f", "x?a b #f", "\x00x", "\x1fx\x1f", "a:b", "1:2", "-a:b", "ftp://h/x", "javascript:void(0)",
    " JavaScript:void(0)", "java\nscript:x", "mailto:a@b", "tel:+1", "data:,x", "é/ü?ö=ä", "%zz", "a%20b",
    "x;jsessionid=1", "//", "//h:99999/", "http://", "?http://h/", "x?y=http://h/", "./a:b", "a/b:c", "\u3000x",
    "x\u00a0", "//me@h/x", "a\ud800b", "/a/./b", "/a/%2e%2e/b", "?a=/../b", "#", " ", "\n", "https: x",
    "https:\tx", "https:/\\h",
]  # fmt: skip
BASES = [
    "https://shop.example/a/b?x=1#k",
    "http://shop.example",
    "http://shop.example/a/b/",
    "https://shop.example:8443/a?b=/c/",
    "http://shop.example/a//b/./c",
]


def by_browser(base: str, href: str) -> str | None:
    """The reference: ada's own resolution."""
    try:
        target: str = (can_ada.parse(base) + href.replace("\ud800", "\ufffd")).href
        return target
    except ValueError:
        return None


@pytest.mark.parametrize("base", BASES)
def test_links_lead_where_a_browser_goes(base: str) -> None:
    for href in HREFS:
        assert resolve(base, href) == by_browser(base, href), href
        assert_joined_as_a_browser(base, href)


@given(st.sampled_from(BASES), st.text(alphabet="/\\?#.:ahtps \t\n%2e@é;&=-+1", max_size=24))
def test_bulk_joining_agrees_with_a_browser(base: str, href: str) -> None:
    assert_joined_as_a_browser(base, href)


def assert_joined_as_a_browser(base: str, href: str) -> None:
    joined = join_all(base, [href])
    target = by_browser(base, href)
    if not joined:
        # Left out: it leads to no page, or to this one.
        here = can_ada.parse(base).href.partition("#")[0]
        assert target is None or target.partition("#")[0] == here or not target.startswith("http"), href
    elif target is None:
        assert read(joined[0]) == Refusal("not a URL"), (href, joined)
    else:
        assert read(joined[0]) == read(target), (href, joined)


def test_joining_leaves_out_what_is_no_page() -> None:
    hrefs = [
        "",
        "#a",
        " ",
        "javascript:x()",
        "JAVASCRIPT:x()",
        "mailto:a@b",
        "tel:1",
        "data:,x",
        "/kept",
        "ftp://h/kept",
    ]
    assert join_all("http://a.example/b/c", hrefs) == ["http://a.example/kept", "ftp://h/kept"]


@given(
    st.lists(
        st.text("/.#? \\\t:ab", max_size=8)
        | st.sampled_from(["/a", "../b", "c.html", "//d.example/", "#e", "mailto:f"])
    )
)
def test_links_are_joined_together_as_each_is_joined_alone(hrefs: list[str]) -> None:
    base = "http://a.example/folder/page"

    assert join_all(base, hrefs) == [joined for href in hrefs for joined in join_all(base, [href])]


def test_a_base_that_is_none_leaves_absolute_links() -> None:
    assert join_all("about:blank", ["/x", "http://a.example/", "y"]) == ["http://a.example/"]
    assert resolve("nonsense", "/x") is None


PIECES = st.sampled_from([
    "http://", "https://", "a.example", "A.Example.", ":80", ":8080", "/", "//", "..", ".", "%2e", "%2E%2e",
    "%7e", "%", "%%", "%3", "%37", "e", "?", "&", "=", "a", "b=1", "utm_x=1", ";", ";jsessionid=", "x", "#", "é",
    " ", "\t", "\\", "@", "[::1]", "xn--", "\ud800", "\x00", "+", "1.2.3.4", "0x7f",
])  # fmt: skip
MANY_RULES = st.builds(
    UrlRules,
    sort_query=st.booleans(),
    trailing_slash=st.sampled_from(["keep", "strip"]),
    tracking=st.sampled_from([(), ["a"]]),
)
URL_LIKE = st.lists(PIECES, max_size=12).map(lambda pieces: "http://a.example/" + "".join(pieces)) | st.lists(
    PIECES, max_size=12
).map("".join)


@given(st.text() | URL_LIKE, MANY_RULES)
@example("http://a.example/%%37e", RULES)
@example("http://a.example/a/..;jsessionid=1/b", RULES)
@example("http://a.example/;jsessionid=.;jsessionid=", RULES)
@example("http://a../", RULES)
def test_identity_is_stable_and_reading_never_raises(text: str, rules: UrlRules) -> None:
    first = read(text, rules)
    if isinstance(first, Refusal):
        return

    assert first.identity.isascii()
    assert identity(first.identity, rules) == first.identity
    again = address(first.url, rules)
    assert again == first
    assert address(first.identity, rules).lane == first.lane


def as_documented(url: str, rules: UrlRules) -> tuple[object, ...]:
    """The page of docs/explain/url-identity.md, written a second time and slowly, on the text that is fetched."""
    parsed = can_ada.parse(url)
    host = parsed.hostname.removesuffix(".")
    path = parsed.pathname
    keep = rules.trailing_slash == "keep"
    pairs = [part for part in parsed.search.removeprefix("?").split("&") if part]
    return (
        parsed.protocol,
        host,
        parsed.port,
        _octets(path if keep else path.rstrip("/")),
        sorted(map(_octets, pairs)),
    )


def _octets(text: str) -> tuple[str, ...]:
    """Characters, where an escape is one character, and an escaped unreserved character is itself."""
    out: list[str] = []
    place = 0
    while place < len(text):
        code = text[place + 1 : place + 3]
        if text[place] == "%" and len(code) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in code):
            char = chr(int(code, 16))
            unreserved = char.isascii() and (char.isalnum() or char in "-._~")
            out.append(char if unreserved else "%" + code.upper())
            place += 3
        else:
            out.append(text[place])
            place += 1
    return tuple(out)


SAFE = st.sampled_from(
    ["a", "A", "%61", "%7e", "~", "%2f", "%2F", "/", "é", "b", "?", "a=1", "b=2", "&", "%", "3", "e"]
)
SAFE_URL = st.lists(SAFE, max_size=8).map(lambda pieces: "http://a.example/" + "".join(pieces))


@given(SAFE_URL, SAFE_URL, st.sampled_from([UrlRules(), UrlRules(trailing_slash="strip")]))
@example("http://a.example/?b=2&a=1", "http://a.example/?a=1&b=2#x", UrlRules())
def test_one_identity_means_a_difference_only_by_the_documented_rules(one: str, other: str, rules: UrlRules) -> None:
    if identity(one, rules) == identity(other, rules):
        assert as_documented(one, rules) == as_documented(other, rules)


@given(SAFE_URL, st.randoms(use_true_random=False))
def test_order_fragments_and_tracking_never_make_a_new_page(url: str, random: object) -> None:
    base, _, query = address(url).url.partition("?")
    parts = [f"n{place}={part}" for place, part in enumerate(query.split("&"))]
    shuffled = [*parts, "utm_term=1"]
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert identity(f"{base}?{'&'.join(parts)}") == identity(f"{base}?{'&'.join(shuffled)}#{query}")


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/" + "%" * 10_000,
        "http://a.example/" + "/.." * 3_000,
        "http://a.example/?" + "&".join(f"p{number}={number}" for number in range(5_000)),
        "http://a.example/?" + "&" * 10_000,
        "http://" + "a." * 3_000 + "example/",
        "http://" + "é." * 3_000 + "example/",
        "http://" + "@" * 10_000 + "a.example/",
        "http://a.example/" + ";jsessionid=" * 900,
        "http:" + "/" * 10_000 + "a.example/",
        "http://a.example/" + "\n" * 10_000,
    ],
)
def test_hostile_urls_are_read_or_refused(url: str) -> None:
    answer = read(url, UrlRules(max_length=100_000))
    assert isinstance(answer, Address | Refusal)
    assert join_all("http://a.example/", [url])


@given(st.text(), st.text())
def test_a_fingerprint_is_a_signed_number_and_never_zero(route: str, text: str) -> None:
    number = fingerprint(route, text)
    assert -(2**63) <= number < 2**63
    assert number != 0
    assert number == fingerprint(route, text)


def test_a_fingerprint_tells_routes_apart_and_does_not_change_between_versions() -> None:
    assert fingerprint("a", "http://x.example/") != fingerprint("b", "http://x.example/")
    # Frontier files outlive releases: if this number changes, every job would visit everything again.
    assert fingerprint("product", "https://shop.example/p/1") == FROZEN


FROZEN = 62728995227801046


def test_a_post_is_told_by_its_body_and_a_key_by_itself() -> None:
    at = address("http://a.example/search")
    plain = Task(url=at.url, route="r")
    first = Task(url=at.url, route="r", method="POST", body=b"page=1")
    second = Task(url=at.url, route="r", method="POST", body=b"page=2")

    assert task_identity(plain, at) == at.identity
    assert len({task_identity(task, at) for task in (plain, first, second)}) == 3
    assert task_identity(Task(url=at.url, route="r", key="T1", body=b"x"), at) == "T1"


def test_a_key_is_never_the_identity_of_a_url() -> None:
    at, other = address("http://a.example/mine"), address("https://a.example/other")
    keys = [other.identity, f"\0{other.identity}", f"\0\0{other.identity}", "T1", "http", "https:/x"]
    found = [task_identity(Task(url=at.url, route="r", key=key), at) for key in keys]
    assert len(set(found)) == len(keys)
    assert not any(identity.startswith(("http://", "https://")) for identity in found)
    assert found[3:] == ["T1", "http", "https:/x"], "keys of stored jobs stay what they are"
    post = Task(url=other.url, route="r", method="POST", body=b"x")
    forged = Task(url=at.url, route="r", key=task_identity(post, other))
    assert task_identity(forged, at) != task_identity(post, other)
