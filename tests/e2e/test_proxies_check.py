"""`trotline proxies check` over real proxies: what works, what does not and why, and what nothing shows."""

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.running import WITHIN, Ended, start

from trotline.testing import real_proxies
from trotline.testing.echo import EchoServer
from trotline.testing.proxy import ForwardProxy
from trotline.testing.torture.certificates import Authority

SECRET = "canary-of-a-proxy"  # noqa: S105 - of proxies of our own


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def running() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listed(folder: Path, *urls: str) -> None:
    path = folder / "proxies.txt"
    path.write_text("\n".join(urls))
    path.chmod(0o600)


async def check(folder: Path, *words: str, trust: Authority | None = None) -> Ended:
    env = {"SSL_CERT_FILE": trust.path("ca.pem")} if trust else {}
    command = ("proxies", "check", "--proxies", "proxies.txt", "--allow", "127.0.0.0/8", "--timeout", "5s", *words)
    ended = await (await start(folder, *command, env=env)).end()
    assert SECRET not in ended.out + ended.err and "anna" not in ended.out + ended.err
    assert "Traceback" not in ended.err
    return ended


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


async def test_every_kind_of_proxy_is_checked_with_an_echo_page(tmp_path: Path, running: ExitStack) -> None:
    web = running.enter_context(real_proxies.tinyproxy(leaves_from="127.0.0.41", user="anna", password=SECRET))
    socks = running.enter_context(real_proxies.microsocks(leaves_from="127.0.0.42", user="anna", password=SECRET))
    listed(tmp_path, web.url, socks.url)
    async with EchoServer() as echo:
        ended = await check(tmp_path, "--echo", echo.url, "--direct", "--json")

    assert ended.code == 0, ended
    found = {event["protocol"]: event for event in ended.events}
    assert {name: event["exits"] for name, event in found.items()} == {"http": ["127.0.0.41"], "socks5": ["127.0.0.42"]}
    for event in found.values():
        assert (event["ok"], event["answers"], event["tries"], event["anonymity"]) == (True, 3, 3, "elite")
        assert 0 < event["latency"] < 5
    # Three times through each, and once directly.
    assert len(echo.asked) == 7


async def test_a_table_at_80_columns_and_exit_code_3_if_one_fails(tmp_path: Path, running: ExitStack) -> None:
    works = running.enter_context(real_proxies.dante(leaves_from="127.0.0.43"))
    wrong = running.enter_context(real_proxies.tinyproxy(user="anna", password=SECRET))
    dead = free_port()
    listed(tmp_path, works.url, wrong.url_as("anna", f"not {SECRET}"), f"http://127.0.0.1:{dead}")
    async with EchoServer() as echo:
        ended = await check(tmp_path, "--echo", echo.url)

    assert ended.code == 3
    lines = ended.out.splitlines()
    assert lines[0].split() == ["proxy", "protocol", "tls", "tries", "latency", "exit", "anonymity", "region"]
    assert lines[1].split()[:4] == [f"127.0.0.1:{works.port}", "socks5", "no", "3/3"]
    assert "127.0.0.43" in lines[1] and "unknown" in lines[1]
    assert f"failed  127.0.0.1:{dead}: unreachable: " in ended.out
    assert f"failed  127.0.0.1:{wrong.port}: authentication failed" in ended.out
    assert lines[-1] == "1 of 3 work"
    assert max(map(len, lines)) <= 80


async def test_a_target_gets_a_handshake_with_tls_and_no_request(
    tmp_path: Path, running: ExitStack, authority: Authority
) -> None:
    certificate = authority.server()
    files = (authority.path("good.pem"), authority.path("good.key"))
    proxies = [
        running.enter_context(real_proxies.tinyproxy(leaves_from="127.0.0.44")),
        running.enter_context(real_proxies.dante(leaves_from="127.0.0.45")),
        running.enter_context(real_proxies.squid(leaves_from="127.0.0.46", tls=files)),
    ]
    listed(tmp_path, *(each.url for each in proxies))
    async with EchoServer(tls=certificate) as target:
        ended = await check(tmp_path, "--target", target.url, "--json", "--allow", "localhost", trust=authority)
        untrusted = await check(tmp_path, "--target", target.url, "--json", "--allow", "localhost")

    assert ended.code == 0, ended
    assert sorted(event["protocol"] for event in ended.events) == ["http", "https", "socks5"]
    assert {event["tls"] for event in ended.events} == {True}
    assert target.asked == []
    assert untrusted.code == 3
    assert all("certificate" in event["why"].lower() for event in untrusted.events), untrusted


async def test_a_captive_proxy_does_not_work(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n<h1>Log in</h1>\n"
    async with ForwardProxy(reply=page) as captive, EchoServer() as echo:
        listed(tmp_path, captive.url)
        asked = await check(tmp_path, "--echo", echo.url, "--json")
        shaken = await check(tmp_path, "--target", echo.url, "--json")

    for ended in (asked, shaken):
        [event] = ended.events
        assert (ended.code, event["ok"], event["tries"]) == (3, False, 2)
        assert "sent a page of its own" in event["why"]


async def test_a_proxy_that_adds_headers_is_seen(tmp_path: Path) -> None:
    """As a forwarding proxy adds them: the echo page shows what it received."""

    def with_via(address: str, headers: dict[str, str]) -> bytes:
        return json.dumps({"origin": "203.0.113.9", "headers": {**headers, "Via": "1.1 p"}, "country": "NL"}).encode()

    async with ForwardProxy() as proxy, EchoServer(with_via) as echo:
        listed(tmp_path, proxy.url)
        [event] = (await check(tmp_path, "--echo", echo.url, "--json")).events

    assert (event["anonymity"], event["region"], event["exits"]) == ("anonymous", "nl", ["203.0.113.9"])


async def test_a_hostile_echo_page_changes_nothing(tmp_path: Path) -> None:
    hostile = b'{"ip": "203.0.113.9", "country": "\\u001b[2Jnl", "headers": {"x": "' + b"y" * 200_000 + b'"}}'
    async with ForwardProxy() as proxy, EchoServer(lambda *_: hostile) as large, EchoServer(status=500) as broken:
        listed(tmp_path, proxy.url)
        cut = await check(tmp_path, "--echo", large.url)
        failed = await check(tmp_path, "--echo", broken.url)

    assert cut.code == 3 and "not an echo page" in cut.out
    assert failed.code == 3 and "status 500" in failed.out
    assert "\x1b" not in cut.out


async def test_ctrl_c_shows_what_is_known_and_returns_130(tmp_path: Path) -> None:
    async with ForwardProxy() as good, EchoServer() as echo:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            port = silent.getsockname()[1]
            listed(tmp_path, good.url, *(f"http://u{n}@127.0.0.1:{port}" for n in range(40)))
            words = ("proxies", "check", "--proxies", "proxies.txt", "--echo", echo.url, "--allow", "127.0.0.1")
            process = await start(tmp_path, *words, "--timeout", "60s", "--concurrency", "2")
            # Two at once: the second proxy that never answers is asked when the good one is done.
            accept = asyncio.get_running_loop().sock_accept
            held = [await asyncio.wait_for(accept(silent), WITHIN) for _ in range(2)]
            process.signal_all(signal.SIGINT)
            ended = await process.end()
            for connection, _ in held:
                connection.close()

    assert ended.code == 130
    assert "1 of 1 work; 40 not checked" in ended.out
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "Give one of --target URL and --echo URL"),
        (("--target", "https://a.example/", "--echo", "https://b.example/"), "Give one of"),
        (("--target", "shop.example"), "--target shop.example is not an http:// or https:// URL"),
        (("--target", "http://10.0.0.1/"), "cannot be used"),
        (("other", "--target", "http://127.0.0.1/"), "there is no proxy pool 'other'"),
        (("--target", "http://127.0.0.1/", "--timeout", "soon"), "--timeout"),
        (("--echo", "http://127.0.0.1:49009/", "--direct"), "the echo page cannot be used, without a proxy"),
    ],
)
async def test_a_check_that_cannot_start_says_why(tmp_path: Path, words: tuple[str, ...], part: str) -> None:
    listed(tmp_path, f"http://anna:{SECRET}@127.0.0.1:9")
    ended = await check(tmp_path, *words)

    assert (ended.code, ended.out) == (2, "")
    assert part in ended.err


async def test_the_authority_of_a_pool_is_for_its_proxies_alone(
    tmp_path: Path, running: ExitStack, authority: Authority
) -> None:
    """An https proxy with a certificate of its own authority, which is not to be trusted for sites."""
    authority.server()
    files = (authority.path("good.pem"), authority.path("good.key"))
    proxy = running.enter_context(real_proxies.squid(leaves_from="127.0.0.47", tls=files))
    own, plain = (
        f'[pools.own]\nca = "{authority.path("ca.pem")}"\nproxies = ["{proxy.url}"]',
        f'[pools.plain]\nproxies = ["{proxy.url}"]',
    )
    (tmp_path / "proxies.toml").write_text(f"{own}\n{plain}\n")
    words = ("--proxies", "proxies.toml", "--json", "--allow", "localhost")
    async with EchoServer() as target, EchoServer(tls=authority.server()) as secure:
        http = await check(tmp_path, *words, "--target", target.url)
        https = await check(tmp_path, "own", *words, "--target", secure.url)
        both = await check(tmp_path, "own", *words, "--target", secure.url, trust=authority)

    why = {event["pool"]: event["why"] for event in http.events}
    assert why["own"] == "", http
    assert "certificate" in why["plain"].lower()
    # Through the proxy, to a site whose authority the system does not know.
    [event] = https.events
    assert not event["ok"] and "certificate" in event["why"].lower() and "proxy" not in event["why"].lower(), event
    assert both.code == 0, both
