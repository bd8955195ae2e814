"""A proxy's URL becomes a proxy, or a complaint that quotes nothing of it."""

import pytest

from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.secret import without_secrets


@pytest.mark.parametrize(
    ("text", "public", "user", "password"),
    [
        ("http://proxy.example:3128", "proxy.example:3128", "", ""),
        (" http://proxy.example:3128/ \n", "proxy.example:3128", "", ""),
        ("http://anna:s3cret@proxy.example:3128", "proxy.example:3128", "anna", "s3cret"),
        ("http://anna:p%40ss%3Aw%2Ford%25@10.0.0.7:8080", "10.0.0.7:8080", "anna", "p@ss:w/ord%"),
        ("http://anna:p@ss@10.0.0.7:8080", "10.0.0.7:8080", "anna", "p@ss"),
        ("http://customer-1-cc-us@gate.example:7000", "gate.example:7000", "customer-1-cc-us", ""),
        ("http://[2001:db8::7]:3128", "[2001:db8::7]:3128", "", ""),
        ("HTTP://PROXY.example:3128", "proxy.example:3128", "", ""),
    ],
)
def test_b76_a_proxy_is_read_with_its_login(text: str, public: str, user: str, password: str) -> None:
    proxy = Proxy.parse(text)
    assert (proxy.public, proxy.user, proxy.password) == (public, user, password)
    assert proxy.mode is ProxyMode.ADDRESS


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "proxy.example:3128", "https://anna:s3cret77@p.example:443", "socks5://anna:s3cret77@p.example:1080",
        "http://", "http://anna:s3cret77@", "http://p.example", "http://anna:s3cret77@p.example:0",
        "http://anna:s3cret77@p.example:99999", "http://anna:s3cret77@p.example:x", "http://:3128",
        "http://anna:s3cret77@p.example:3128/path", "http://anna:s3cret77@p.example:3128?s3cret77",
        "http://anna:s3cret77/x@p.example:3128", "http://anna:s3cret77@[::1", "http://anna:s3%0d%0acret77@p.example:3128",
        "http://anna:s3cret77@p\u00e9.example:3128",
    ],
)  # fmt: skip
def test_b76_what_is_no_proxy_is_complained_about_without_quoting_it(text: str) -> None:
    with pytest.raises(ValueError, match="prox") as refused:
        Proxy.parse(text)
    assert "s3cret77" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_proxy_shows_neither_user_nor_password() -> None:
    proxy = Proxy.parse("http://anna:tiger-and-lion@proxy.example:3128", ProxyMode.NAME)
    assert repr(proxy) == str(proxy) == f"{proxy}" == "Proxy(proxy.example:3128, name)"
    said = without_secrets(f"no way with tiger-and-lion or Basic {proxy.credentials}")
    assert "tiger" not in said
    assert proxy.credentials not in said
