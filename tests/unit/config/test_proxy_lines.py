"""A plain list of proxies: bad lines are named by number and lose no other, and no message quotes a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.config import proxy_lines
from trotline.config.proxy_lines import Login, read
from trotline.model.proxy import ProxyMode
from trotline.rules import redaction


def test_each_line_is_a_proxy_with_its_own_weight_and_region() -> None:
    found = read(
        "\ufeff# bought in March\n"
        "http://anna:s3cret-77@10.1.1.1:3128\n"
        "\n"
        "  https://10.1.1.2:443   weight=0.5 region=EU   # slow\r\n"
        "socks5://10.1.1.3:1080 # the old one\n",
        ProxyMode.NAME,
    )
    assert not found.bad
    assert [(each.line, each.proxy.scheme, each.proxy.public, each.weight, each.region) for each in found.entries] == [
        (2, "http", "10.1.1.1:3128", None, ""),
        (4, "https", "10.1.1.2:443", 0.5, "eu"),
        (5, "socks5", "10.1.1.3:1080", None, ""),
    ]
    assert found.has_logins
    assert {each.proxy.mode for each in found.entries} == {ProxyMode.NAME}


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("10.1.1.1:3128:anna:s3cret-77", "write it as http://<user>:<password>@host:port"),
        ("10.1.1.1:3128", "write it as http://host:port"),
        ("ftp://anna:s3cret-77@10.1.1.1:21", "http://, https:// or socks5://"),
        ("http://anna:s3cret-77@10.1.1.1", "this one has no port"),
        ("http://:3128", "this one has no host"),
        ("http://10.1.1.1:99999", "the port is not a number from 1 to 65535; write"),
        ("http://10.1.1.1:0", "the port is not a number from 1 to 65535; write"),
        ("http://10.1.1.1:31z8", "the port is not a number from 1 to 65535; write"),
        ("http://anna:s3cret-77/x@10.1.1.1:3128", "or the password has characters that must be percent-encoded"),
        ("http://anna-{session}:s3cret-77@10.1.1.1:80", "{session} is filled in only for a gateway"),
        ("http://anna:s3cret-77-%7Bcountry%7D@10.1.1.1:80", "{country} is filled in only for a gateway"),
        ("http://10.1.1.1:3128 weight=2", "at most 1"),
        ("http://10.1.1.1:3128 weight=nan", "above 0"),
        ("http://10.1.1.1:3128 weight=0", "remove it"),
        ("http://10.1.1.1:3128 region=", "region must be"),
        ("http://10.1.1.1:3128 s3cret-77", "only weight=0.5 and region=eu"),
        ("http://10.1.1.1:3128 wieght=1", "only weight=0.5 and region=eu"),
        ("s3cret-77" * 400, "longer than"),
        ("s3cret-77", "write it like"),
    ],
)
def test_a_bad_line_is_named_with_what_to_write_instead_and_the_others_are_used(line: str, instead: str) -> None:
    found = read(f"http://10.1.1.1:80\n{line}\nhttp://10.1.1.2:80\n")
    assert [each.line for each in found.entries] == [1, 3]
    assert "line 2: " in found.complaint()
    assert instead in found.complaint()
    assert "s3cret" not in found.complaint()
    assert redaction.text(found.complaint()) == found.complaint(), "what to write would not be shown"


def test_ten_thousand_bad_lines_are_counted_and_a_few_are_named() -> None:
    found = read("\n".join(["http://10.1.1.1:80", *["nonsense"] * 10_000]))
    assert len(found.entries) == 1
    assert found.complaint().startswith("10,000 lines are not used: line 2: ")
    assert found.complaint().endswith("; and 9,995 more")


def test_a_list_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_lines, "MOST_LINES", 3)
    found = read("\n".join(f"http://10.1.1.{number}:80" for number in range(9)))
    assert len(found.entries) == 3
    assert "line 4: a list has at most 3 lines" in found.complaint()


def test_other_braces_belong_to_the_login() -> None:
    [entry] = read("http://anna:{a}{{b}@10.1.1.1:80").entries
    assert (entry.proxy.user, entry.proxy.password) == ("anna", "{a}{{b}")


def test_the_login_of_a_pool_is_for_lines_without_one() -> None:
    own, other = read("http://bert:pw@10.1.1.1:80\nhttp://10.1.1.2:80", login=Login("anna", "s3cret-77")).entries
    assert (own.proxy.user, own.proxy.password) == ("bert", "pw")
    assert (other.proxy.user, other.proxy.password) == ("anna", "s3cret-77")
    assert "s3cret" not in repr(Login("anna", "s3cret-77"))


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    found = read(text)
    assert len(found.entries) + len(found.bad) <= text.count("\n") + 1
