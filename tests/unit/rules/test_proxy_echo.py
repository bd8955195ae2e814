"""Echo pages: the common forms are read, and nothing that a hostile page says gets further."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.proxy_echo import LARGEST, Anonymity, Echo, anonymity, read


@pytest.mark.parametrize(
    ("body", "echo"),
    [
        (b"203.0.113.9\n", Echo(address="203.0.113.9")),
        (b"2001:db8::1", Echo(address="2001:db8::1")),
        (b'{"ip": "203.0.113.9"}', Echo(address="203.0.113.9")),
        (
            b'{"origin": "203.0.113.9, 198.51.100.1", "headers": {"Via": "1.1 p"}}',
            Echo(address="203.0.113.9", headers=(("via", "1.1 p"),)),
        ),
        (b'{"query": "203.0.113.9", "countryCode": "DE"}', Echo(address="203.0.113.9", region="de")),
        (b'{"ip": "203.0.113.9", "country": "United States"}', Echo(address="203.0.113.9", region="united states")),
    ],
)
def test_the_forms_of_common_services_are_read(body: bytes, echo: Echo) -> None:
    assert read(body) == echo


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<h1>Log in</h1>",
        b"[]",
        b"{}",
        b'{"ip": 5}',
        b'{"ip": "shop.example"}',
        b"fe80::1%\x1b[2J",
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_another_page_is_no_echo(body: bytes) -> None:
    assert read(body) is None


def test_a_region_that_is_no_name_is_left_out() -> None:
    for region in ("\x1b[2Jde", "<b>", "x" * 500, 7, None, ["de"]):
        assert read(json.dumps({"ip": "203.0.113.9", "country": region}).encode()) == Echo(address="203.0.113.9")


pages = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.just("fe80::1%\x1b[2J"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["ip", "headers", "country", "x"]), inner)
    ),
)


@given(st.binary(max_size=300) | pages.map(lambda page: json.dumps(page).encode()))
def test_nothing_on_a_page_raises_or_passes_unchecked(body: bytes) -> None:
    found = read(body)
    if found is not None:
        assert len(found.address) <= 45 and found.address.isprintable() and found.region.isprintable()
        anonymity(found, "198.51.100.7")


def test_only_the_beginning_of_a_page_is_read() -> None:
    assert read(b" " * LARGEST + b"203.0.113.9") is None


@pytest.mark.parametrize(
    ("headers", "address", "own", "found"),
    [
        ({"accept": "*/*"}, "203.0.113.9", "198.51.100.7", Anonymity.ELITE),
        ({"via": "1.1 squid"}, "203.0.113.9", "198.51.100.7", Anonymity.ANONYMOUS),
        ({"x-forwarded-for": "198.51.100.7"}, "203.0.113.9", "198.51.100.7", Anonymity.TRANSPARENT),
        ({"forwarded": "for=198.51.100.7:80;by=x"}, "203.0.113.9", "198.51.100.7", Anonymity.TRANSPARENT),
        ({"host": "198.51.100.7:80"}, "203.0.113.9", "198.51.100.7", Anonymity.ELITE),
        ({"x-forwarded-for": "198.51.100.77"}, "203.0.113.9", "198.51.100.7", Anonymity.ANONYMOUS),
        ({"accept": "*/*"}, "198.51.100.7", "198.51.100.7", Anonymity.TRANSPARENT),
        ({"accept": "*/*"}, "203.0.113.9", "", Anonymity.UNKNOWN),
        ({}, "203.0.113.9", "198.51.100.7", Anonymity.UNKNOWN),
        ({"via": "1.1 squid"}, "203.0.113.9", "", Anonymity.ANONYMOUS),
    ],
)
def test_anonymity_is_what_the_site_sees(headers: dict[str, str], address: str, own: str, found: Anonymity) -> None:
    assert anonymity(Echo(address=address, headers=tuple(headers.items())), own) is found
