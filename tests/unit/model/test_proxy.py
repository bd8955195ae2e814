"""A proxy's URL becomes a proxy, or a complaint that quotes nothing of it."""

import msgspec
import pytest

from trotline.model import secret
from trotline.model.proxy import ApiGateway, Proxy, ProxyMode
from trotline.model.secret import Secret, without_secrets


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
        ("https://anna:s3cret@proxy.example:443", "proxy.example:443", "anna", "s3cret"),
        ("socks5://10.0.0.7:1080", "10.0.0.7:1080", "", ""),
        ("SOCKS5://anna:p%40ss@[2001:db8::7]:1080", "[2001:db8::7]:1080", "anna", "p@ss"),
    ],
)
def test_b76_a_proxy_is_read_with_its_login(text: str, public: str, user: str, password: str) -> None:
    proxy = Proxy.parse(text)
    assert (proxy.public, proxy.user, proxy.password) == (public, user, password)
    assert proxy.mode is ProxyMode.ADDRESS
    assert proxy.scheme == text.strip().partition(":")[0].lower()


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "proxy.example:3128", "ftp://anna:s3cret77@p.example:443", "socks5h://anna:s3cret77@p.example:1080",
        "socks5://p.example", "https://anna:s3cret77@p.example", f"socks5://anna:s3cret77{'x' * 300}@p.example:1080",
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


@pytest.mark.parametrize(
    "options", [{"ca_file": "ca.pem"}, {"total": 0.0}, {"total": float("nan")}, {"total": 1e9}],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"ca_file|time limit"):
        Proxy.parse("http://proxy.example:3128", **options)


def test_many_sessions_of_one_login_cost_no_memory_for_redaction() -> None:
    """A gateway has thousands of sessions, each with a login of its own."""
    base = "s3cret77"
    for number in range(100):
        session = {"user": f"anna-session-{number}", "password": f"{base}_{number}", "secret": base}
        proxy = Proxy(host="g.example", port=1, **session)
    assert len(secret._known) < 30
    assert "s3cret77" not in without_secrets(f"{proxy.password} {proxy.credentials}")
    assert proxy.credentials not in without_secrets(proxy.credentials)


def gateway(**options: object) -> ApiGateway:
    return ApiGateway(**{"endpoint": "https://api.example/", "key": Secret("k3y-of-ours"), **options})


def test_a_gateway_shows_no_key_and_does_not_leave_the_process() -> None:
    made = gateway()
    assert repr(made) == f"{made}" == "ApiGateway(api.example:443)"
    assert "k3y-of-ours" not in repr([made, {"way": made}])
    with pytest.raises(TypeError):
        msgspec.json.encode(made)


def test_a_gateway_that_is_read_again_is_the_same() -> None:
    assert gateway() == gateway()
    assert len({gateway(), gateway(), gateway(key=Secret("an0ther-key"))}) == 2


@pytest.mark.parametrize(
    "endpoint",
    ["", "api.example", "ftp://api.example/", "https://u:k3y-of-ours@api.example/", "https://a b/", "http://"],
)
def test_a_gateway_needs_a_url_without_a_login(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint") as refused:
        gateway(endpoint=endpoint)
    assert "k3y-of-ours" not in str(refused.value)
