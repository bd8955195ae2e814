"""Bad URLs, row by row (B1 to B20): what is read from them, what is refused, and that reading stays cheap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.frontier.gate import CUTS_OF_A_PAGE, TOO_MANY, Gate
from trotline.model.harvest import Follow
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.rules.near_duplicate_pages import Similarity
from trotline.rules.private_addresses import allowed, is_number, why_not_address, why_not_name, why_not_port
from trotline.rules.scope import Scope
from trotline.rules.traps import TrapDetector
from trotline.rules.urls import Address, Refusal, UrlRules, fingerprint, join_all, read, resolve

HERE = "https://shop.example/a/list?x=1"
NOW = 1_770_000_000.0
PARENT = Task(url=HERE, route="listing", depth=1)


def gate(limits: Limits | None = None, scope: Scope | None = None) -> Gate:
    return Gate(scope or Scope(), UrlRules(), TrapDetector(), site="s", retries=0, limits=limits or Limits())


def address(url: str) -> Address:
    found = read(url)
    assert isinstance(found, Address), (url, found)
    return found


def refusal(url: str) -> str:
    found = read(url)
    assert isinstance(found, Refusal), (url, found)
    return found.why


SCHEMES = [
    "file:///etc/passwd", "ftp://shop.example/", "gopher://shop.example/", "data:text/html,<h1>x</h1>", "dict://h:6379/",
    "javascript:alert(1)", "jar:http://shop.example/!/", "JaVaScRiPt:alert(1)", " file:///etc/passwd", "fi\nle:///etc/passwd",
    "blob:http://shop.example/x", "view-source:http://shop.example/", "ws://shop.example/", "about:blank", "ldap://h/",
]  # fmt: skip


@pytest.mark.parametrize("url", SCHEMES)
def test_b1_only_http_and_https_are_read(url: str) -> None:
    assert refusal(url) == "scheme"
    result = gate().filter([], [Follow(route="r", urls=[url])], PARENT, HERE, 0.0)
    assert result.tasks == []


@pytest.mark.parametrize("name", ["metadata.google.internal", "METADATA", "instance-data.", "metadata.tencentyun.com"])
def test_b2_metadata_names_are_known(name: str) -> None:
    assert why_not_name(name)
    assert not why_not_name(f"shop.{name}")


LOOPBACK = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7F.1 017700000001 0177.0.0.1 0x7f.0.0.01 127.0.0.1.
①②⑦.⓪.⓪.① １２７.0.0.1 127。0。0。1 %31%32%37.%30.0.1
""".split()  # noqa: SIM905


@pytest.mark.parametrize("host", LOOPBACK)
def test_b3_every_number_form_is_read_as_the_one_address_that_is_judged(host: str) -> None:
    found = address(f"http://{host}/").host
    assert found == "127.0.0.1"
    assert why_not_address(found) == "loopback"


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "0x", "1.2.3.4", "shop.1", "::1"])
def test_b3_a_host_that_anybody_could_read_as_a_number_is_judged_as_one(host: str) -> None:
    assert is_number(host)


@pytest.mark.parametrize(
    "host", ["shop.example", "1and1.example", "0x7f.example", "example.0a", "x0x1", "a1", "127.0.0.x"]
)
def test_b3_names_with_digits_are_names(host: str) -> None:
    assert not is_number(host)


@pytest.mark.parametrize("host", ["256.1.1.1", "1.2.3.4.5", "0x100000000", "127.0.0.08", "1..1", "4294967296"])
def test_b3_numbers_that_are_no_address_are_no_host(host: str) -> None:
    assert isinstance(read(f"http://{host}/"), Refusal)


@pytest.mark.parametrize(
    "host", ["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fec0::1", "fe80::5efe:7f00:1"]
)
def test_b4_ipv6_forms_keep_what_they_carry_until_they_are_judged(host: str) -> None:
    assert why_not_address(address(f"http://[{host}]/").host.strip("[]"))


@pytest.mark.parametrize(
    "host", ["[fe80::1%25eth0]", "[fe80::1%eth0]", "[fd00::1%251]", "[::1", "::1", "[::g]", "[::1]x"]
)
def test_b4_zone_ids_and_broken_brackets_are_no_hosts(host: str) -> None:
    assert refusal(f"http://{host}/") == "not a URL"


@pytest.mark.parametrize("zone", ["2606:4700::1%eth0", "fe80::1%1", "::1%lo"])
def test_b4_an_address_of_one_interface_is_not_dialled(zone: str) -> None:
    assert why_not_address(zone)


def test_b8_a_backslash_is_a_slash_to_us_as_to_browsers() -> None:
    found = address("http://ok.example:80\\@127.0.0.1/")
    assert (found.host, found.url) == ("ok.example", "http://ok.example/@127.0.0.1/")
    assert resolve(HERE, "\\\\evil.example\\x") == "https://evil.example/x"


@pytest.mark.parametrize("url", ["http://ok.example@127.0.0.1/", "http://ok.example%00@127.0.0.1/", "http://@@h.test/"])
def test_b8_what_stands_before_an_at_sign_is_no_host(url: str) -> None:
    assert refusal(url) == "user-info"


@pytest.mark.parametrize("url", ["http://a:b@ok.example/", "http://a@ok.example/", "http://:b@ok.example/"])
def test_b10_credentials_in_a_url_never_become_a_task(url: str) -> None:
    assert refusal(url) == "user-info"
    result = gate().filter([], [Follow(route="r", urls=[url])], PARENT, HERE, NOW)
    assert (result.tasks, result.refused) == ([], {"user-info": 1})


@pytest.mark.parametrize("url", ["http://ex\tample.test/", " \n http://example.test/ ", "ht\ntp://exam\rple.test/"])
def test_b9_white_space_is_taken_out_once_and_the_same_text_is_judged_and_dialled(url: str) -> None:
    assert address(url).url == "http://example.test/"


def test_b9_a_space_inside_a_host_is_refused() -> None:
    assert refusal("http://exam ple.test/") == "not a URL"


@pytest.mark.parametrize(
    "url", ["http://h.test:99999/", "http://h.test:-1/", "http://h.test:8a/", "http://h.test:65536/"]
)
def test_b11_ports_that_do_not_exist_are_no_url(url: str) -> None:
    assert refusal(url) == "not a URL"


@pytest.mark.parametrize("port", [0, -1, 99999, 22, 25, 6379])
def test_b11_ports_of_other_protocols_are_not_dialled(port: int) -> None:
    assert why_not_port(port)


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_b12_long_urls_are_dropped_and_counted(size: int) -> None:
    long = "https://shop.example/" + "a" * size
    assert refusal(long) == "too long"
    result = gate().filter([], [Follow(route="r", urls=[long])], PARENT, HERE, 0.0)
    assert (result.tasks, result.refused) == ([], {"too long": 1})


def test_b12_five_thousand_parameters_have_one_identity_in_any_order() -> None:
    rules = UrlRules(max_length=60_000)
    pairs = [f"k{number}={number}" for number in range(5_000)]
    one = read("http://h.test/?" + "&".join(pairs), rules)
    other = read("http://h.test/?" + "&".join(reversed(pairs)), rules)
    assert isinstance(one, Address)
    assert isinstance(other, Address)
    assert one.identity == other.identity


def test_b13_international_names_are_punycode() -> None:
    assert address("http://Bücher.example/").host == "xn--bcher-kva.example"
    assert address("http://BÜCHER。example/").identity == address("http://xn--bcher-kva.example/").identity
    # Cyrillic letters that look Latin stay another name.
    assert address("http://аpple.example/").host != "apple.example"


@pytest.mark.parametrize(
    "host",
    [
        "a." * 3_000 + "example", "ü." * 3_000 + "example", "a" * 64 + ".example", "xn--" + "9" * 70 + ".example",
        "\u0378.example", "xn--a.example", "a..b", "\u200d.example", "٠" * 5_000 + ".example",
    ],
)  # fmt: skip
def test_b13_names_that_dns_cannot_know_are_refused(host: str) -> None:
    assert refusal(f"http://{host}/") in ("bad host", "not a URL", "too long")


def test_b14_encoded_control_characters_stay_encoded() -> None:
    assert address("http://h.test/a%00b%0d%0aX-Evil:%201").url == "http://h.test/a%00b%0d%0aX-Evil:%201"
    assert address("http://h.test/%252e%252e/x").url == "http://h.test/%252e%252e/x"
    assert address("http://h.test/a%2Fb").identity != address("http://h.test/a/b").identity


def test_b14_encoded_dots_climb_as_in_browsers_and_never_above_the_root() -> None:
    assert address("http://h.test/a/%2e%2e/%2E./%2e%2e/b").url == "http://h.test/b"


@given(st.text(max_size=60))
def test_b14_what_is_read_can_never_break_a_request_line(text: str) -> None:
    found = read(f"http://h.test/{text}")
    if isinstance(found, Address):
        assert found.url.isascii()
        assert not any(character <= " " or character == "\x7f" for character in found.url)


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("#top", None), ("", None), ("//cdn.example/x", "https://cdn.example/x"), ("http:///p", "http://p/"),
        ("../b", "https://shop.example/b"), ("?y=2", "https://shop.example/a/list?y=2"), ("https:/x", "https://shop.example/x"),
        ("http://", None), ("https://", None), ("//", None),
    ],
)  # fmt: skip
def test_b15_references_are_resolved_as_browsers_do_or_dropped(href: str, url: str | None) -> None:
    found = [read(joined) for joined in join_all(HERE, [href])]
    assert [one.url for one in found if isinstance(one, Address)] == ([url] if url else [])


def test_b16_spellings_of_one_page_have_one_fingerprint() -> None:
    spellings = [
        "http://shop.example/p?a=1&b=2", "HTTP://SHOP.example./p?b=2&a=1", "http://shop.example:80/p?a=1&b=2#x",
        "http://shop.example/x/../p?a=1&b=2", "http://shop.example/%70?a=1&b=2&utm_source=mail",
    ]  # fmt: skip
    assert len({fingerprint("r", address(url).identity) for url in spellings}) == 1


def test_b17_traps_are_refused_and_counted() -> None:
    deep = [f"https://shop.example/{'a/' * number}x" for number in range(1, 40)]
    calendar = [f"https://shop.example/calendar?date={year}-01-01" for year in range(2027, 2100)]
    sessions = [f"https://shop.example/p?jsessionid={number}" for number in range(40)]
    ours = gate()
    repeating = Similarity("pages alike: same text but for digits", "trap: same text", alike=True, repeats=True)
    follow = Follow(route="r", urls=[*deep, *calendar, *sessions])
    result = ours.filter_alike(repeating, [], [follow], PARENT, HERE, NOW)

    assert {"trap: repeated segments", "trap: far future date"} <= set(result.refused)
    assert result.known == 39, "a session id makes no other page"
    assert len(result.tasks) < 20
    assert all(example for _, example in ours.traps.caught.values())


@pytest.mark.parametrize(
    "host", ["[evil.example]", "[", "]", "[]", "[::1].evil.example", "evil[.example", "[127.0.0.1]"]
)
def test_b18_brackets_hold_ipv6_or_nothing(host: str) -> None:
    assert refusal(f"http://{host}/") == "not a URL"


def test_b19_half_characters_are_encoded_as_replacements() -> None:
    assert address("http://h.test/a\ud800b").url == "http://h.test/a%EF%BF%BDb"
    assert resolve(HERE, "x\udfff") == "https://shop.example/a/x%EF%BF%BD"
    assert isinstance(read("http://h\ud800.test/"), Refusal)


@given(st.text(alphabet=st.characters(), max_size=80))
def test_b19_no_text_makes_reading_raise(text: str) -> None:
    for url in (text, f"http://{text}/", f"http://h.test/{text}"):
        assert isinstance(read(url), (Address, Refusal))
    join_all(HERE, [text])


def test_b20_of_a_million_links_the_first_are_taken_and_the_rest_counted() -> None:
    links = [f"https://shop.example/p/{number}" for number in range(1_000_000)]
    result = gate(limits=Limits(links=5_000)).filter([], [Follow(route="r", urls=links)], PARENT, HERE, 0.0)
    assert len(result.tasks) == 5_000
    assert result.tasks[-1].url == "https://shop.example/p/4999"
    assert result.refused == {TOO_MANY: 995_000}
    assert result.examples == {TOO_MANY: HERE}
    assert len(result.cut) == CUTS_OF_A_PAGE


# What may be allowed all the same


def test_allowed_places_are_names_what_is_below_a_name_addresses_and_networks() -> None:
    open_to = allowed(["Wiki.Corp.example.", "*.lab.example", "10.20.0.7", "[fd00::7]", "192.168.0.0/16"])

    assert open_to.name("wiki.corp.example")
    assert open_to.name("a.lab.example")
    assert not open_to.name("lab.example")
    assert not open_to.name("corp.example")
    inside = ["10.20.0.7", "fd00::7", "192.168.9.9", "::ffff:192.168.9.9"]
    outside = ["10.20.0.8", "fd00::8", "192.169.0.1", "64:ff9b::c0a8:909", "127.0.0.1"]
    assert all(map(open_to.address, inside))
    assert not any(map(open_to.address, outside))


@pytest.mark.parametrize(
    ("place", "advice"),
    [
        ("http://wiki.corp/", "neither a host"), ("wiki.corp:8080", "neither a host"),
        ("127.1", "neither a host"), ("", "neither a host"), ("*", "neither a host"), ("10.*", "neither a host"),
        ("10.20.0.7/16", "write 10.20.0.0/16"),
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_meant_says_what_to_write(place: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        allowed([place])
