"""`trotline web` as a real process against real crawls, on files and on servers."""

from pathlib import Path

import pytest
from tests.e2e.fleet import Fleet
from tests.e2e.running import call
from tests.e2e.web_server import OPERATE, VIEW, tokens, web, write_spider

from trotline.testing.shop import DemoShop


async def test_the_numbers_are_those_of_the_store(fleet: Fleet, shop: DemoShop) -> None:
    write_spider(fleet.folder, shop.url)
    ended = await fleet.call("run", "shop.py", "--json")
    assert ended.code == 3, ended
    [truth] = (await fleet.call("status", "--json")).events

    async with web(fleet.folder, env=fleet.environment) as server:
        [job] = (await server.get("/api/v1/jobs")).json["jobs"]
        assert await server.get(f"/api/v1/jobs/{job['job']}")

    same = ("job", "spider", "state", "admitted", "waiting", "leased", "done", "dead", "rejected", "started_at")
    assert {name: truth[name] for name in same} == {name: job[name] for name in same}
    assert job["done"] >= 14 and job["dead"] == 1 and not job["unreachable"]


async def test_the_jobs_of_a_folder_are_found_without_a_frontier(tmp_path: Path, shop: DemoShop) -> None:
    write_spider(tmp_path, shop.url, seeds=("/p/T1",))
    await call(tmp_path, "run", "shop.py", "--allow-private")
    async with web(tmp_path) as server:
        answer = (await server.get("/api/v1/jobs")).json
    assert ["shop-1"] == [job["job"] for job in answer["jobs"]]
    assert ["sqlite:.trotline/shop.frontier.db"] == [place["frontier"] for place in answer["places"]]


async def test_ctrl_c_ends_it_at_once_and_a_used_port_is_a_clear_error(tmp_path: Path) -> None:
    async with web(tmp_path) as server:
        port = server.url.rpartition(":")[2]
        second = await call(tmp_path, "web", "--listen", f"127.0.0.1:{port}")
        assert 2 == second.code
        assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in second.err
        ended = await server.stop()
    assert 0 == ended.code


@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0"])
async def test_other_machines_need_a_token(tmp_path: Path, listen: str) -> None:
    ended = await call(tmp_path, "web", "--listen", listen)
    assert 2 == ended.code
    assert "a token is needed" in ended.err


async def test_a_short_token_one_for_all_to_read_and_one_typed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("letmein")
    (tmp_path / "short").chmod(0o600)
    (tmp_path / "open").write_text(VIEW)
    (tmp_path / "open").chmod(0o644)
    for reference, why in (
        ("file:short", "fewer than 32"),
        ("file:open", "others can read it"),
        (VIEW, "is not file:PATH or env:NAME"),
        ("env:NOT_SET_HERE", "is not set"),
    ):
        ended = await call(tmp_path, "web", "--listen", "127.0.0.1:0", "--token-view", reference)
        assert (2, True) == (ended.code, why in ended.err), ended
        assert VIEW not in ended.err and "letmein" not in ended.err


async def test_roles_are_those_of_the_tokens(tmp_path: Path) -> None:
    async with web(tmp_path, *tokens(tmp_path)) as server:
        assert 401 == (await server.get("/api/v1/about")).status
        for token, role in ((VIEW, "view"), (OPERATE, "operate")):
            server.token = token
            assert role == (await server.get("/api/v1/about")).json["role"]
        server.token = VIEW[:-1]
        assert 401 == (await server.get("/api/v1/about")).status
        assert 200 == (await server.get("/api/v1/health", headers={"Authorization": ""})).status
        ended = await server.stop()
    assert VIEW not in ended.err and OPERATE not in ended.err


async def test_a_session_begins_with_a_token_and_ends_with_the_logout(tmp_path: Path) -> None:
    async with web(tmp_path, *tokens(tmp_path)) as server:
        own = {"Origin": server.url}
        wrong = await server.post("/login", json=None, data={"token": "x"}, headers=own)
        assert (401, True) == (wrong.status, "not a token" in wrong.text)
        right = await server.post("/login", json=None, data={"token": VIEW, "next": "//evil.example"}, headers=own)
        assert (303, "/") == (right.status, right.headers["Location"])
        cookie = right.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and VIEW not in cookie
        assert "session" == (await server.get("/api/v1/about")).json["how"]
        assert 403 == (await server.post("/logout", json=None)).status
        assert 303 == (await server.post("/logout", json=None, headers=own)).status
        assert 401 == (await server.get("/api/v1/about")).status
