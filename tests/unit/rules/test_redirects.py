"""What a redirect makes of a task: methods as the Fetch standard has them, secrets only within one origin."""

import msgspec
import pytest

from trotline.model.task import Task
from trotline.rules.redirects import moved

HEADERS = (
    ("Authorization", "Bearer s3cret"),
    ("Cookie", "session=1"),
    ("X-Api-Key", "k"),
    ("Accept-Language", "de"),
    ("Content-Type", "application/json"),
)
POST = Task(
    url="https://shop.example/search", route="page", lane="shop.example", fingerprint=7, method="POST", body=b"{}",
    headers=HEADERS, attempt=2, meta={"n": 1}, depth=3, key="k",
)  # fmt: skip


def names(task: Task) -> set[str]:
    return {name.lower() for name, _ in task.headers}


def hop(status: int, url: str = "https://shop.example/found", **fields: object) -> Task:
    return moved(msgspec.structs.replace(POST, **fields), status, url, "shop.example")


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "DELETE", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "GET", "GET"),
        (302, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (307, "PUT", "PUT"),
        (308, "GET", "GET"),
    ],
)
def test_the_method_changes_as_in_a_browser(status, method, becomes):
    assert hop(status, method=method).method == becomes


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_body_does_not_travel_with_what_became_a_get(status):
    after = hop(status)

    assert after.body == b""
    assert "content-type" not in names(after)
    assert "accept-language" in names(after)


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_travels_where_the_method_stays(status):
    after = hop(status)

    assert after.body == b"{}"
    assert "content-type" in names(after)


@pytest.mark.parametrize("url", ["https://shop.example/found", "https://shop.example:443/found"])
def test_secrets_stay_within_the_origin(url):
    assert {"authorization", "cookie", "x-api-key"} <= names(hop(302, url))


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/found",
        "https://www.shop.example/found",
        "https://shop.example.evil.example/",
        "http://shop.example/found",
        "https://shop.example:8443/found",
        "https://shop.example@evil.example/",
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_secrets_never_cross_an_origin(status, url):
    after = hop(status, url)

    assert names(after) & {"authorization", "cookie", "x-api-key"} == set()
    assert "accept-language" in names(after)


def test_it_stays_the_same_task_one_hop_further():
    after = moved(POST, 302, "https://other.example/x", "other.example")

    assert (after.url, after.lane, after.hops) == ("https://other.example/x", "other.example", 1)
    assert (after.fingerprint, after.attempt, after.meta, after.depth, after.key) == (7, 2, {"n": 1}, 3, "k")
    assert moved(after, 302, "https://other.example/y", "other.example").hops == 2


def test_a_header_that_tells_by_its_name_never_crosses_an_origin():
    names = ("X-Shop-Token", "Api-Key", "X-Session-Id", "X-CSRF-Token", "Accept-Language")
    task = Task(url="https://shop.test/a", route="r", headers=tuple((name, "v") for name in names))
    assert moved(task, 302, "https://shop.test/b", "shop.test").headers == task.headers
    assert moved(task, 302, "https://other.test/b", "other.test").headers == (("Accept-Language", "v"),)


def test_a_redirect_goes_through_the_same_pool() -> None:
    task = msgspec.structs.replace(POST, pool="home", lane="shop.example via home")
    there = moved(task, 302, "https://www.shop.example/", "www.shop.example")
    assert (there.pool, there.lane) == ("home", "www.shop.example via home")
    assert moved(POST, 302, "https://www.shop.example/", "www.shop.example").lane == "www.shop.example"
