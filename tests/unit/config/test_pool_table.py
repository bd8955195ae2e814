"""A table of proxies.toml: every key has a type and a default, and a wrong one is refused by name."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trotline.config.pool_members import of_gateway
from trotline.config.pool_table import HOLD, KEYS, PoolKind, read
from trotline.errors import SettingsError
from trotline.model.proxy import ApiGateway, Proxy, ProxyMode
from trotline.model.proxy_pool import PoolRules
from trotline.model.secret import Secret

LIST = {"list": "proxies.txt"}
GATE = {"endpoint": "http://gate.example:7777", "user": "customer-{session}", "password": "s3cret-77"}


def refused(**table: Any) -> str:
    with pytest.raises(SettingsError) as error:
        read("proxies.toml", "home", table)
    assert "s3cret" not in str(error.value)
    assert error.value.__cause__ is None
    return str(error.value)


def test_defaults_of_a_list() -> None:
    table = read("proxies.toml", "home", LIST)
    assert table.rules == PoolRules(rest=1800.0, longest_rest=86400.0, hold=1)
    assert (table.info.kind, table.info.region, table.weight, table.mode) == (
        PoolKind.DATACENTER,
        "",
        1.0,
        ProxyMode.ADDRESS,
    )


def test_every_key_of_a_list_has_its_effect() -> None:
    table = read(
        "proxies.toml",
        "home",
        LIST
        | {
            "kind": "isp", "provider": "Example Net", "region": "EU", "weight": 0.5, "cost_per_gb": 4,
            "cost_per_request": 0.001, "pace": "30/m", "rate": "10/s", "concurrency": 3, "rest": "10m",
            "longest_rest": "2h", "hold": 7, "mode": "name", "user": "anna", "password": "s3cret-77",
        },
    )  # fmt: skip
    assert table.rules == PoolRules(
        rest=600.0, longest_rest=7200.0, hold=7, interval=2.0, member_interval=0.1, member_concurrency=3
    )
    assert (table.info.kind, table.info.provider, table.info.region) == (PoolKind.ISP, "Example Net", "eu")
    assert (table.info.cost_per_gb, table.info.cost_per_request, table.weight) == (4.0, 0.001, 0.5)
    assert (table.login.user, table.login.password, table.mode) == ("anna", "s3cret-77", ProxyMode.NAME)
    assert table.has_logins
    assert "s3cret" not in repr(table)


@pytest.mark.parametrize(
    ("kind", "hold"), [("datacenter", 1), ("residential", 20), ("mobile", 20), ("isp", 5), ("gateway", 20)]
)
def test_the_kind_decides_how_long_a_member_is_held(kind: str, hold: int) -> None:
    assert read("proxies.toml", "home", LIST | {"kind": kind}).rules.hold == hold
    assert set(HOLD) == set(PoolKind)


def test_logins_by_reference_are_not_logins_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pw").write_text("s3cret-77\n")
    (tmp_path / "pw").chmod(0o600)
    monkeypatch.setenv("PROXY_USER", "anna")
    table = read("proxies.toml", "home", LIST | {"user": "env:PROXY_USER", "password": f"file:{tmp_path}/pw"})
    assert (table.login.user, table.login.password, table.has_logins) == ("anna", "s3cret-77", False)


def test_a_user_beside_a_password_by_reference_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_PASSWORD", "s3cret-77")
    for source in (LIST, {"endpoint": "http://gate.example:7777"}):
        given = source | {"user": "anna", "password": "env:GATE_PASSWORD"}
        assert not read("proxies.toml", "home", given).has_logins
        assert read("proxies.toml", "home", source | {"user": "my-api-key"}).has_logins
        assert read("proxies.toml", "home", given | {"password": "s3cret-77"}).has_logins
    assert read("proxies.toml", "home", {"endpoint": "http://anna:s3cret-77@gate.example:7777"}).has_logins


def test_a_gateway_has_slots_and_a_login_with_places() -> None:
    table = read("proxies.toml", "home", GATE | {"slots": 3, "country": "us", "minutes": 30, "timeout": "90s"})
    assert table.gateway is not None
    assert (table.gateway.slots, table.gateway.country, table.gateway.minutes) == (3, "us", 30)
    assert table.info.kind is PoolKind.GATEWAY
    assert isinstance(table.gateway.way, Proxy)
    assert not table.gateway.way.one_request_per_tunnel
    assert table.gateway.way.total == 90.0


def test_a_gateway_without_sessions_rotates_so_a_tunnel_has_one_request() -> None:
    table = read("proxies.toml", "home", GATE | {"user": "customer"})
    assert table.gateway is not None
    assert isinstance(table.gateway.way, Proxy)
    assert table.gateway.way.one_request_per_tunnel


def test_an_api_gateway_has_a_key_and_the_name_of_the_parameter() -> None:
    given = {"endpoint": "https://api.example/v1/", "parameter": "target", "key": "s3cret-77", "key_parameter": "k"}
    table = read("proxies.toml", "home", given)
    assert table.gateway is not None
    assert table.gateway.way == ApiGateway(
        endpoint="https://api.example/v1/", url_parameter="target", key=Secret("s3cret-77"), key_parameter="k"
    )
    assert "s3cret" not in repr(table.gateway.way)


def test_a_known_provider_has_its_own_form_of_login() -> None:
    given = {
        "endpoint": "http://gate.example:7777", "provider": "ThorData", "user": "anna", "password": "s3cret-77",
        "country": "au", "slots": 2, "minutes": 300,
    }  # fmt: skip
    table = read("proxies.toml", "home", given)
    assert table.gateway is not None
    assert table.gateway.minutes == 90, "the longest session of this provider"
    members = of_gateway(table.gateway, 1.0, "")
    [one, other] = [members.way(member.id, "shop.example via home") for member in members.members]
    assert isinstance(one, Proxy)
    assert isinstance(other, Proxy)
    assert re.fullmatch(r"td-customer-anna-country-au-sessid-[a-z0-9]{10}-sesstime-90", one.user)
    assert one.user != other.user
    assert one.password == given["password"]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, "it has no proxies"),
        (LIST | {"url": "https://lists.example/"}, "list and url are given"),
        (LIST | {"regoin": "eu"}, "Did you mean 'region'?"),
        (LIST | {"kind": "house"}, "datacenter, residential, mobile, isp, gateway"),
        (LIST | {"weight": 1.5}, "weight must be"),
        (LIST | {"weight": True}, "weight must be"),
        (LIST | {"pace": 1}, 'like "1/s"'),
        (LIST | {"pace": "fast"}, 'must be a rate like "1/s"'),
        (LIST | {"rate": "1/s per proxy"}, "must be a rate"),
        (LIST | {"concurrency": 0}, "from 1 to"),
        (LIST | {"rest": 1800}, 'like "90s"'),
        (LIST | {"rest": "0s"}, "above 0 s"),
        (LIST | {"rest": "2h", "longest_rest": "1h"}, "shorter than rest"),
        (LIST | {"hold": 64}, "from 0 to 63"),
        (LIST | {"cost_per_gb": -1}, ">= 0"),
        (LIST | {"cost_per_gb": float("nan")}, ">= 0"),
        (LIST | {"region": "not a word"}, "region must be"),
        (LIST | {"mode": "magic"}, "address, forward, name"),
        (LIST | {"slots": 3}, "slots has no effect with list"),
        (LIST | {"password": "s3cret-77"}, "a password without a user"),
        (LIST | {"user": "env:NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"list": ""}, "text in one line"),
        ({"list": "a\nb"}, "text in one line"),
        ({"proxies": []}, "list of URLs"),
        ({"proxies": "http://10.1.1.1:80"}, "list of URLs"),
        (GATE | {"endpoint": "gate.example"}, "endpoint"),
        (GATE | {"user": "x-{s3cret-77}"}, "unknown placeholder"),
        (GATE | {"user": "x-{country}"}, "no country is given"),
        (GATE | {"user": "x", "minutes": 5}, "minutes has no effect without {session}"),
        (GATE | {"slots": 10_001}, "from 1 to 10,000"),
        ({"endpoint": "http://api.example/", "key": "s3cret-77"}, "must be https"),
        ({"endpoint": "https://api.example/?k=s3cret-77", "key": "s3cret-77"}, "without login and query"),
        ({"endpoint": "https://api.example/", "key": "s3cret-77", "user": "anna"}, "no effect with an API gateway"),
    ],
)
def test_a_wrong_key_is_refused_with_the_pool_and_what_is_allowed(table: dict[str, Any], says: str) -> None:
    said = refused(**table)
    assert said.startswith("proxies.toml: pools.home: ")
    assert says in said


@pytest.mark.parametrize("name", ["", "a b", "a via b", "x" * 65, "a.b"])
def test_a_pool_has_a_plain_name(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be the name of a pool"):
        read("proxies.toml", name, LIST)


def test_every_key_is_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "proxies.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in page] == []


ODD: list[Any] = [
    "s3cret-77", "", " ", "s3cret-77\n", "x" * 5_000, 0, -1, 10**30, 1.5, float("inf"), float("nan"), True, [], {},
    ["s3cret-77"], [7], {"s3cret-77": 1}, date(2026, 1, 1), "env:", "env:NO_SUCH_s3cret", "file:/no/such", "{", "{}",
    "{s3cret-77}", "http://anna:s3cret-77@[::1", "http://anna:s3cret-77@h:1", "https://h:1/?s3cret-77", "1/s", "1/0",
    "30m", "999999999999999999999d", "\x00", "http://[s3cret-77]:1", "https://h:s3cret-77/",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("source", [LIST, GATE, {"endpoint": "https://api.example/", "key": "s3cret-77"}, {}])
def test_whatever_a_key_is_the_table_is_read_or_refused_without_a_secret(key: str, source: dict[str, Any]) -> None:
    for odd in ODD:
        try:
            read("proxies.toml", "home", source | {key: odd})
        except SettingsError as refused:
            said = str(refused).replace("NO_SUCH_s3cret", "")
            assert "s3cret" not in said, (key, odd)
            assert len(said) < 1_000
            assert refused.hint
