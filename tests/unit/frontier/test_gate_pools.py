"""The gate and proxy pools: a host through a pool is a lane of its own; an unknown pool is an invalid value."""

from collections.abc import Collection

import pytest

from trotline.frontier.gate import Gate
from trotline.model.harvest import Follow
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.rules.scope import Scope
from trotline.rules.task_checks import InvalidValue
from trotline.rules.traps import TrapDetector
from trotline.rules.urls import UrlRules

HERE = "https://shop.example/list"
PARENT = Task(url=HERE, route="listing", lane="shop.example via home", pool="home")
PAGE = "https://shop.example/p/1"


def gate(pool: str = "", pools: Collection[str] | None = ("home", "datacenter")) -> Gate:
    return Gate(
        Scope(hosts=["shop.example"]),
        UrlRules(),
        TrapDetector(),
        site="shop",
        retries=3,
        pool=pool,
        pools=None if pools is None else lambda: pools,
        limits=Limits(),
    )


def lanes(door: Gate, *tasks: Task, follows: Collection[Follow] = ()) -> list[tuple[str, str]]:
    return [(task.pool, task.lane) for task in door.filter(tasks, list(follows), PARENT, HERE, 0.0).tasks]


def test_a_task_without_a_pool_has_the_lane_of_its_host() -> None:
    assert lanes(gate(), Task(url=PAGE, route="p")) == [("", "shop.example")]


@pytest.mark.parametrize(
    ("fields", "lane"),
    [
        ({}, ("home", "shop.example via home")),
        ({"pool": "datacenter"}, ("datacenter", "shop.example via datacenter")),
        ({"lane": "slow"}, ("home", "slow via home")),
        ({"lane": "shop.example via home", "pool": "home"}, ("home", "shop.example via home")),
        # Exported by `trotline dead`, and put in again with another pool.
        ({"lane": "shop.example via home", "pool": "datacenter"}, ("datacenter", "shop.example via datacenter")),
        ({"lane": "shop.example via datacenter"}, ("datacenter", "shop.example via datacenter")),
    ],
)
def test_the_pool_is_a_part_of_the_lane(fields: dict[str, str], lane: tuple[str, str]) -> None:
    draft = Task(url=PAGE, route="p", **fields)  # type: ignore[arg-type]
    assert lanes(gate("home"), draft) == [lane]
    assert [(task.pool, task.lane) for task in gate("home").seeds([draft], 0.0).tasks] == [lane]


def test_where_there_is_a_pool_default_it_is_that_of_tasks_that_name_none() -> None:
    plain = gate(pools=("default",))
    assert lanes(plain, Task(url=PAGE, route="p")) == [("default", "shop.example via default")]
    assert lanes(plain, follows=[Follow(route="p", urls=[PAGE])]) == [("default", "shop.example via default")]
    assert [task.pool for task in plain.seeds([Task(url=PAGE, route="p")], 0.0).tasks] == ["default"]
    assert lanes(gate("home", ("home", "default")), Task(url=PAGE, route="p")) == [("home", "shop.example via home")]


def test_direct_is_a_connection_without_a_proxy() -> None:
    asked = Task(url=PAGE, route="p", pool="direct")
    assert lanes(gate("home"), asked) == [("direct", "shop.example")]
    assert lanes(gate(pools=("default",)), asked) == [("direct", "shop.example")]
    assert lanes(gate("direct", ("default",)), Task(url=PAGE, route="p")) == [("direct", "shop.example")]


def test_links_follow_through_their_own_pool_or_the_spiders() -> None:
    own = Follow(route="p", urls=[PAGE], pool="datacenter")
    usual = Follow(route="q", urls=[PAGE])
    assert lanes(gate("home"), follows=[own, usual]) == [
        ("datacenter", "shop.example via datacenter"),
        ("home", "shop.example via home"),
    ]


def test_an_unknown_pool_is_an_invalid_value_of_the_handler_with_the_pools_that_exist() -> None:
    for given in (
        {"tasks": [Task(url=PAGE, route="p", pool="datacentre")]},
        {"follows": [Follow(route="p", urls=[], pool="datacentre")]},
    ):
        with pytest.raises(InvalidValue) as refused:
            gate().filter(given.get("tasks", []), given.get("follows", []), PARENT, HERE, 0.0)  # type: ignore[arg-type]
        assert str(refused.value) == (
            "there is no proxy pool 'datacentre'. Did you mean 'datacenter'? Pools: datacenter, home."
        )


def test_without_proxies_a_pool_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidValue, match="No proxies are set: give a file with the pools"):
        gate(pools=()).filter([Task(url=PAGE, route="p", pool="home")], [], PARENT, HERE, 0.0)


def test_where_the_pools_are_not_known_every_name_passes() -> None:
    assert lanes(gate(pools=None), Task(url=PAGE, route="p", pool="other")) == [("other", "shop.example via other")]


def test_a_seed_with_an_unknown_pool_is_refused_with_a_reason_and_the_others_pass() -> None:
    drafts = [Task(url=PAGE, route="p", pool="hme"), Task(url=f"{PAGE}2", route="p", pool="home")]
    result = gate().seeds(drafts, 0.0)
    assert [task.lane for task in result.tasks] == ["shop.example via home"]
    [(why, count)] = result.refused.items()
    assert (why, count) == ("there is no proxy pool 'hme'. Did you mean 'home'? Pools: datacenter, home.", 1)
    assert gate().explain(drafts[0], PARENT).verdict == f"refused: {why}"


@pytest.mark.parametrize("odd", ["a b", "x via home", "x" * 65, 7])
def test_a_pool_with_an_odd_name_never_becomes_a_lane(odd: object) -> None:
    with pytest.raises(InvalidValue, match=r"letters, digits, - or _"):
        gate(pools=None).filter([Task(url=PAGE, route="p", pool=odd)], [], PARENT, HERE, 0.0)  # type: ignore[arg-type]


def test_session_ids_of_a_host_are_found_through_a_pool_too() -> None:
    """The rules for traps count by host, and pages come with the lane."""
    seen = []
    for lane in ("shop.example", "shop.example via home"):
        door = gate()
        for number in range(40):
            url = f"https://shop.example/p/1?sid={number:032x}"
            door.find_near_duplicate(lane, url, lambda: b"the same long text on every page " * 20)
        seen.append(door.traps.sessions._confirmed)
    assert seen[0] == seen[1]
    assert seen[0].get("shop.example")
