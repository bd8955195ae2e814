"""The gate: what comes through, what does not and why, and that nothing is forgotten or lost on the way."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.frontier.gate import Gate
from trotline.frontier.link_cache import KnownLinks
from trotline.model.harvest import Follow
from trotline.model.limits import Limits
from trotline.model.task import SOON, Task
from trotline.rules.scope import Scope
from trotline.rules.traps import TrapDetector, TrapRules
from trotline.rules.urls import UrlRules, fingerprint

NOW = 1_770_000_000.0
HERE = "https://shop.example/list"
PARENT = Task(url=HERE, route="listing", depth=3)


def gate(scope: Scope | None = None, limits: Limits | None = None, traps: TrapRules | None = None) -> Gate:
    return Gate(
        scope or Scope(hosts=["shop.example"]),
        UrlRules(),
        TrapDetector(traps),
        site="shop",
        retries=5,
        pool="home",
        limits=limits or Limits(),
    )


def follow(*urls: str, route: str = "product") -> Follow:
    return Follow(route=route, urls=list(urls))


def draft(url: str, **fields: object) -> Task:
    return Task(url=url, route="product", **fields)  # type: ignore[arg-type]


def test_a_link_becomes_a_whole_task() -> None:
    links = Follow(route="product", urls=["https://SHOP.example:443/p/1?b=2&a=1#top"], priority=SOON, meta={"x": 1})
    result = gate().filter([], [links], PARENT, HERE, NOW)

    assert result.tasks == [
        Task(
            url="https://shop.example/p/1?b=2&a=1",
            route="product",
            lane="shop.example via home",
            fingerprint=fingerprint("product", "https://shop.example/p/1?a=1&b=2"),
            priority=SOON,
            depth=4,
            retries=5,
            site="shop",
            pool="home",
            created_at=NOW,
            parent=HERE,
            meta={"x": 1},
        )
    ]
    assert (result.refused, result.known) == ({}, 0)


def test_a_draft_keeps_what_its_author_said() -> None:
    said = draft(
        "https://shop.example/p/1", lane="slow", depth=1, retries=0, site="other", pool="dc", created_at=7.0,
        parent="x", session="me", priority=1,
    )  # fmt: skip
    [task] = gate().filter([said], [], PARENT, HERE, NOW).tasks

    assert task.fingerprint != 0
    assert (task.lane, task.depth, task.retries, task.site, task.pool) == ("slow via dc", 1, 0, "other", "dc")
    assert (task.created_at, task.parent, task.session, task.priority) == (7.0, "x", "me", 1)


def test_a_draft_gets_what_its_author_left_open() -> None:
    [task] = gate().filter([draft("https://shop.example/p/1")], [], PARENT, HERE, NOW).tasks

    assert (task.lane, task.depth, task.site, task.pool) == ("shop.example via home", 4, "shop", "home")
    assert (task.created_at, task.parent) == (NOW, HERE)


def test_one_page_twice_on_a_page_is_one_task() -> None:
    drafts = [draft("https://shop.example/p/1"), draft("https://shop.example/p/1#a")]
    links = follow("https://shop.example/p/1?utm_source=x", "https://shop.example/p/2", "https://shop.example/p/2")
    result = gate().filter(drafts, [links], PARENT, HERE, NOW)

    assert [task.url for task in result.tasks] == ["https://shop.example/p/1", "https://shop.example/p/2"]
    assert result.known == 3


def test_what_a_frontier_may_have_forgotten_is_new_again() -> None:
    door = gate()
    links = [follow("https://shop.example/p/1")]
    door.confirm(door.filter([], links, PARENT, HERE, NOW).tasks)
    assert not door.filter([], links, PARENT, HERE, NOW).tasks

    door.forget()

    assert [task.url for task in door.filter([], links, PARENT, HERE, NOW).tasks] == ["https://shop.example/p/1"]


def test_one_url_for_two_routes_is_two_tasks() -> None:
    door = gate()
    url = "https://shop.example/p/1"
    first = door.filter([], [follow(url, route="a"), follow(url, route="b")], PARENT, HERE, NOW)
    door.confirm(first.tasks[:1])
    second = door.filter([], [follow(url, route="a"), follow(url, route="b")], PARENT, HERE, NOW)

    assert [task.route for task in first.tasks] == ["a", "b"]
    assert [task.route for task in second.tasks] == ["b"]


def test_a_link_is_known_only_after_its_commit() -> None:
    door = gate()
    links = [follow("https://shop.example/p/1#x")]
    first = door.filter([], links, PARENT, HERE, NOW)
    again = door.filter([], links, PARENT, HERE, NOW)
    assert again.tasks == first.tasks  # the commit may have failed: the link must come again

    door.confirm(first.tasks)

    for spelling in ["https://shop.example/p/1#x", "https://shop.example/p/1", "HTTPS://Shop.Example/p/1?gclid=1"]:
        for _ in range(2):
            result = door.filter([draft(spelling)], [follow(spelling)], PARENT, HERE, NOW)
            assert (result.tasks, result.known) == ([], 2)


def test_links_and_tasks_keep_their_chain_and_their_order():
    links = Follow(route="page", urls=["https://shop.example/1", "https://shop.example/2"], chain="a")
    drafts = [Task(url=f"https://shop.example/{number}", route="page", chain="b") for number in (4, 3)]

    found = gate().filter(drafts, [links], PARENT, HERE, 0.0).tasks

    assert [(task.url[-1], task.chain) for task in found] == [("4", "b"), ("3", "b"), ("1", "a"), ("2", "a")]


def test_every_refusal_is_counted_with_its_reason_each_time() -> None:
    door = gate(Scope(hosts=["shop.example"], exclude=["/cart"]))
    links = follow(
        "https://other.example/", "https://other.example/2", "ftp://shop.example/", "https://shop.example/cart",
        "nonsense", "https://me:secret@shop.example/", "https://shop.example" + "/a" * 10,
        "https://shop.example/" + "a" * 2_083,
    )  # fmt: skip
    for _ in range(3):
        assert door.filter([], [links], PARENT, HERE, NOW).refused == {
            "host": 2, "scheme": 1, "excluded": 1, "not a URL": 1, "user-info": 1, "too long": 1,
            "trap: repeated segments": 1,
        }  # fmt: skip
    assert door.traps.caught == {"trap: repeated segments": (3, "https://shop.example" + "/a" * 10)}


def test_a_long_link_that_is_out_of_scope_was_not_cut_by_its_length() -> None:
    long = "a" * 3_000
    links = follow(f"https://other.example/{long}", f"https://shop.example/cart/{long}", f"https://shop.example/{long}")
    door = gate(Scope(hosts=["shop.example"], exclude=["/cart"]))
    alone = gate(Scope(same_host=True))

    for _ in range(2):
        assert door.filter([], [links], PARENT, HERE, NOW).refused == {"host": 1, "excluded": 1, "too long": 1}
        assert alone.filter([], [links], PARENT, HERE, NOW).refused == {"another host": 1, "too long": 2}


def test_an_index_of_many_thousand_links_is_taken_whole_by_default() -> None:
    links = follow(*(f"https://shop.example/p/{number}" for number in range(18_000)))
    result = gate().filter([], [links], PARENT, HERE, NOW)
    assert (len(result.tasks), result.refused) == (18_000, {})


def test_too_deep_here_is_not_too_deep_from_nearer() -> None:
    door = gate(Scope(max_depth=4))
    links = [follow("https://shop.example/p/1")]
    deep = Task(url=HERE, route="listing", depth=4)

    assert door.filter([], links, deep, HERE, NOW).refused == {"depth": 1}
    assert len(door.filter([], links, PARENT, HERE, NOW).tasks) == 1


def test_a_page_with_too_many_links_gives_the_first_and_counts_the_rest() -> None:
    door = gate(limits=Limits(links=5))
    drafts = [draft(f"https://shop.example/d/{number}") for number in range(3)]
    links = [follow(*(f"https://shop.example/{route}/{number}" for number in range(4)), route=route) for route in "ab"]
    result = door.filter(drafts, links, PARENT, HERE, NOW)

    assert [task.url[-3:] for task in result.tasks] == ["d/0", "d/1", "d/2", "a/0", "a/1"]
    assert result.refused == {"too many links": 6}
    assert door.filter(drafts * 3, [], PARENT, HERE, NOW).refused == {"too many links": 4}


def test_a_key_is_the_identity_whatever_the_url() -> None:
    door = gate()
    first = door.filter([draft("https://shop.example/1", key="T1")], [], PARENT, HERE, NOW)
    door.confirm(first.tasks)

    assert door.filter([draft("https://shop.example/2", key="T1")], [], PARENT, HERE, NOW).known == 1
    # The URL itself was never asked for under its own name.
    assert len(door.filter([draft("https://shop.example/1")], [], PARENT, HERE, NOW).tasks) == 1


def test_posts_of_different_bodies_are_different_tasks() -> None:
    door = gate()
    posts = [draft("https://shop.example/find", method="POST", body=body) for body in (b"page=1", b"page=2", b"page=1")]
    result = door.filter(posts, [], PARENT, HERE, NOW)
    door.confirm(result.tasks)

    assert [task.body for task in result.tasks] == [b"page=1", b"page=2"]
    assert len(door.filter([draft("https://shop.example/find")], [], PARENT, HERE, NOW).tasks) == 1
    assert door.filter(posts, [], PARENT, HERE, NOW).known == 3


def test_seeds_start_at_depth_0_and_may_be_long_and_many() -> None:
    door = gate(traps=TrapRules(query_variants=3, query_values=3))
    long = "https://shop.example/" + "a" * 5_000
    seeds = [draft(long), draft("https://shop.example/a/a/a/a/a"), draft("https://shop.example/#x")]
    many = [draft(f"https://shop.example/?x={number}&y={number}") for number in range(50)]
    result = door.seeds([*seeds, *many, draft("https://shop.example/")], NOW)

    assert len(result.tasks) == 53
    assert result.known == 1
    assert result.refused == {}
    first = result.tasks[0]
    assert (first.url, first.depth, first.parent, first.created_at, first.site) == (long, 0, "", NOW, "shop")


def test_seeds_out_of_scope_are_refused_with_the_reason() -> None:
    seeds = [draft("https://other.example/"), draft("shop.example"), draft("https://shop.example/" + "a" * 9_000)]

    assert gate().seeds(seeds, NOW).refused == {"host": 1, "not a URL": 1, "too long": 1}
    assert gate(Scope()).seeds(seeds, NOW).refused == {"not a URL": 1, "too long": 1}


def test_explaining_tells_what_sifting_would_do_and_changes_nothing() -> None:
    door = gate()
    cases = {
        "https://shop.example/p?b=1&a=2": "admitted",
        "https://other.example/": "refused: host",
        "mailto:x@shop.example": "refused: scheme",
        "https://shop.example" + "/a" * 10: "refused: trap: repeated segments",
    }
    for url, verdict in cases.items():
        assert door.explain(url, PARENT, NOW).verdict == verdict
    assert door.traps.caught == {}

    explained = door.explain("https://shop.example/p?b=1&a=2", PARENT)
    assert str(explained) == "admitted  https://shop.example/p?a=2&b=1"
    door.confirm(door.filter([draft("https://shop.example/p/1")], [], PARENT, HERE, NOW).tasks)
    assert door.explain(draft("https://shop.example/p/1"), PARENT).verdict == "known"
    assert door.explain("https://shop.example/" + "a" * 5_000).verdict == "admitted"


URLS = st.lists(
    st.sampled_from(
        [f"https://shop.example/p/{number}{end}" for number in range(12) for end in ("", "#a", "?utm_x=1")]
        + ["https://other.example/", "nonsense", "https://shop.example/a/a/a/a"]
    ),
    max_size=12,
)


@given(st.lists(st.tuples(URLS, URLS, st.booleans()), max_size=12), st.integers(1, 6))
def test_no_link_is_lost_whatever_commits_fail_and_however_small_the_memory(
    pages: list[tuple[list[str], list[str], bool]], size: int
) -> None:
    door = gate()
    door._known = KnownLinks(size=size, characters=size * 30)
    committed: set[int] = set()
    wanted: set[int] = set()
    for links, drafted, commits in pages:
        result = door.filter([draft(url) for url in drafted], [follow(*links)], PARENT, HERE, NOW)
        assert len(result.tasks) + result.known + sum(result.refused.values()) == len(links) + len(drafted)
        offered = {
            fingerprint("product", f"https://shop.example/p/{url.split('/p/')[1].partition('#')[0].partition('?')[0]}")
            for url in links + drafted
            if "/p/" in url
        }
        assert offered <= {task.fingerprint for task in result.tasks} | committed
        if commits:
            door.confirm(result.tasks)
            committed |= {task.fingerprint for task in result.tasks}
            wanted |= offered
    assert wanted <= committed


def test_what_is_met_often_stays_known_and_what_is_not_is_forgotten() -> None:
    known = KnownLinks(size=10)
    known.add_text("r", "often")
    known.add_text("r", "once")
    known.add_fingerprint(1)
    known.add_refusal("bad", "host")
    for number in range(100):
        known.add_text("r", str(number))
        known.add_fingerprint(number + 1_000)
        assert known.unknown("r", ["often"]) == []
        assert 1 in known
        assert known.refusal("bad") == "host"
    assert known.unknown("r", ["often", "once"]) == ["once"]
    assert not known.has_text("other route", "often")


@pytest.mark.slow("tracemalloc looks at every allocation")
def test_memory_of_known_links_stays_bounded() -> None:
    known = KnownLinks()
    tracemalloc.start()
    for number in range(260_000):
        known.add_text("r", f"https://shop.example/category/some-product-of-a-shop/{number:08}/{number:08}")
        known.add_fingerprint(number * 7_919_000_000)
    held, _ = tracemalloc.get_traced_memory()
    for number in range(6_000):
        known.add_refusal(f"https://shop.example/{number:08}" + "a" * 2_000, "host")
    held_long, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 45_000_000
    assert held_long < 45_000_000


def test_a_redirect_leads_to_an_address_or_to_the_reason_why_not() -> None:
    door = gate()

    address = door.moved_to("https://SHOP.example:8443/new#x", PARENT)
    assert not isinstance(address, str)
    assert (address.url, address.lane) == ("https://shop.example:8443/new", "shop.example:8443")
    assert door.moved_to("https://other.example/", PARENT) == "host"
    assert door.moved_to("about:blank", PARENT) == "scheme"


def test_a_crawl_that_names_no_hosts_stays_on_the_host_of_each_page() -> None:
    door = gate(scope=Scope(same_host=True))
    links = Follow(route="product", urls=["https://shop.example/p/9", "https://elsewhere.example/p/9"])

    result = door.filter([], [links], PARENT, HERE, NOW)

    assert [task.url for task in result.tasks] == ["https://shop.example/p/9"]
    assert result.refused == {"another host": 1}


def test_a_link_refused_for_another_host_is_admitted_from_its_own() -> None:
    door = gate(scope=Scope(same_host=True))
    links = Follow(route="product", urls=["https://elsewhere.example/p/9"])
    door.filter([], [links], PARENT, HERE, NOW)

    result = door.filter([], [links], PARENT, "https://elsewhere.example/", NOW)

    assert [task.url for task in result.tasks] == ["https://elsewhere.example/p/9"]
