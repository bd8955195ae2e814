"""deploy/compose.yaml: what it promises can be read from it; that it runs is in compose_run.py."""

import re
import stat
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.tools import DEPLOY, PENDING, command_of, document, unknown_options
from trotline.config.spider_loader import load

OURS = ("coordinator", "web", "worker")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return document(DEPLOY / "compose.yaml")


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {**document(DEPLOY / "compose.demo.yaml")["services"], **compose["services"]}


def words(command: list[str]) -> list[str]:
    """With the defaults of its variables."""
    return [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word) for word in command]


def test_the_services_are_those_that_a_fleet_has(compose: dict[str, Any]) -> None:
    assert sorted(compose["services"]) == sorted([*OURS, "valkey", "postgres"])
    assert compose["services"]["worker"]["deploy"] | {"resources": 0} == {
        "mode": "replicated",
        "replicas": 5,
        "resources": 0,
    }


def test_every_container_is_hardened_limited_and_restarted(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["restart"] == "unless-stopped", name
        assert {"cpus", "memory"} <= service["deploy"]["resources"]["limits"].keys(), name
        assert "privileged" not in service, name


def test_every_service_has_a_health_check(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["healthcheck"]["test"][0] == "CMD", name


def test_only_the_dashboard_is_published_and_on_loopback(services: dict[str, dict[str, Any]]) -> None:
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert ports.keys() == {"web"}
    assert all(port.startswith("127.0.0.1:") for port in ports["web"])


def test_the_servers_have_no_way_out(compose: dict[str, Any]) -> None:
    assert compose["networks"]["backend"] == {"internal": True}
    for name in ("valkey", "postgres"):
        assert compose["services"][name]["networks"] == ["backend"]


def test_visits_in_flight_may_end_before_a_worker_is_killed(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    grace, period = worker["environment"]["TROTLINE_GRACE"], worker["stop_grace_period"]
    assert int(period.removesuffix("s")) >= int(grace.removesuffix("s")) + 10


def test_passwords_are_in_files_only(compose: dict[str, Any]) -> None:
    assert not re.search(r"://[^/\s]*:[^/\s]*@", (DEPLOY / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        used = set(service.get("secrets", []))
        assert used <= compose["secrets"].keys(), name
        text = repr([service.get("environment", {}), service.get("command", "")])
        assert set(re.findall(r"/run/secrets/(\w+)", text)) <= used, name
    for name in OURS:
        places = compose["services"][name]["environment"]
        assert places["TROTLINE_FRONTIER"] == "file:/run/secrets/frontier_url"
        assert places["TROTLINE_SINK"] == "file:/run/secrets/sink_url"
        assert places["PROXY_LIST"] == "${PROXIES:+/run/secrets/proxies}"


@pytest.mark.parametrize("name", OURS)
def test_every_command_exists_with_its_options(services: dict[str, dict[str, Any]], name: str) -> None:
    command = words(services[name]["command"])
    if command[0] in PENDING and command_of(command) is None:
        pytest.skip(f"`trotline {command[0]}` is not there yet")
    assert unknown_options(command) == set()


def test_the_example_spider_loads_and_visits_the_demo_shop_of_the_file(services: dict[str, dict[str, Any]]) -> None:
    spider = load(str(DEPLOY / "spiders" / "shop.py"))
    assert [task.url for task in spider.seeds()] == ["http://shop:8010/catalog"]
    assert services["shop"]["environment"]["HEALTH_PORT"] == "8010"


# The secrets


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    script = tmp_path / "make-secrets"
    script.write_bytes((DEPLOY / "make-secrets").read_bytes())
    script.chmod(0o755)
    return script


def made(script: Path, *arguments: str | Path) -> dict[str, str]:
    subprocess.run([script, *arguments], check=True, capture_output=True, timeout=30)
    return {file.name: file.read_text() for file in (script.parent / "secrets").iterdir()}


def test_all_secrets_are_made_and_only_their_folder_is_closed(copy: Path, compose: dict[str, Any]) -> None:
    secrets = made(copy)
    folder = copy.parent / "secrets"
    assert {f"./secrets/{name}" for name in secrets} == {each["file"] for each in compose["secrets"].values()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o444}
    password = re.fullmatch(r"redis://trotline:([0-9a-f]{64})@valkey:6379/0\n", secrets["frontier_url"])
    assert password is not None
    assert f"user trotline on #{sha256(password[1].encode()).hexdigest()} " in secrets["valkey_users"]
    assert password[1] not in secrets["valkey_users"]
    assert (
        secrets["sink_url"] == f"postgresql://trotline:{secrets['postgres_password'].strip()}@postgres:5432/trotline\n"
    )
    assert len({secrets[name].strip() for name in ("postgres_password", "token_view", "token_operate")}) == 3


def test_secrets_that_are_there_are_kept(copy: Path) -> None:
    before = made(copy)
    (copy.parent / "secrets" / "token_view").unlink()
    after = made(copy)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"token_view"}


def test_proxies_are_used_once_there_are_some(copy: Path, tmp_path: Path) -> None:
    assert made(copy)["proxies"] == ""
    assert not (tmp_path / ".env").exists()
    (tmp_path / "list.txt").write_text("http://10.1.1.1:80\n")
    for _ in range(2):
        assert made(copy, tmp_path / "list.txt")["proxies"] == "http://10.1.1.1:80\n"
    assert (tmp_path / ".env").read_text() == "PROXIES=yes\n"
