"""From facts to the story of a URL: its fate, its lives, and what happened in each."""

import msgspec
import pytest

from trotline.model.job import Progress, TaskStatus
from trotline.model.visit_row import VisitRow
from trotline.rules.scope import Scope
from trotline.rules.url_history import Facts, Fate, Identity, What, rule_behind, story_of

URL = "https://shop.example/p/17"
PROGRESS = Progress(waiting=0, leased=0, done=0, dead=0)


def visit(token, outcome="done", *, attempt=0, job="shop-1", fingerprint=7, route="product", at=None, **more):
    return VisitRow(
        job=job, token=token, site="shop", url=URL, fingerprint=fingerprint, route=route, lane="shop.example",
        worker="w1", leased_at=1000.0 + token if at is None else at, attempt=attempt,
        **{"parent": "https://shop.example/", "found_at": 999.0, "depth": 1, "outcome": outcome, **more},
    )  # fmt: skip


def facts(*visits, states=None, **more):
    places = {route: TaskStatus(state=state) for route, state in (states or {}).items()}
    identities = tuple(
        Identity(route=route, fingerprint=number, whereabouts=place)
        for number, (route, place) in enumerate(places.items(), 7)
    )
    known = {"job": "shop-1", "asked": URL, "url": URL, "same_as": URL, "progress": PROGRESS, "identities": identities}
    return Facts(**known | {"visits": visits} | more)


def happened(story, life=0):
    return [(str(event.what), event.count) for event in story.lives[life].events]


# How it stands


@pytest.mark.parametrize("state", ["waiting", "delayed", "leased", "dead"])
def test_what_the_frontier_holds_is_what_counts(state):
    story = story_of(facts(visit(1, "retry"), states={"product": state}))

    assert story.fate == state
    assert story.identity is not None
    assert story.identity.route == "product"


def test_a_page_that_was_read_and_left_the_frontier_is_read():
    story = story_of(facts(visit(1), states={"product": "ended"}))

    assert (story.fate, story.why) == (Fate.READ, "")
    assert story.last == visit(1)


def test_a_page_that_gave_nothing_to_read_says_why():
    story = story_of(facts(visit(1, why="gone: 404"), states={"product": "ended"}))

    assert (story.fate, story.why) == (Fate.DROPPED, "gone: 404")


def test_a_page_that_ended_without_a_line_is_only_known_to_have_ended():
    assert story_of(facts(states={"product": "ended"})).fate == Fate.ENDED
    assert story_of(facts(visit(1, "retry"), states={"product": "ended"})).fate == Fate.ENDED


def test_a_task_that_may_be_at_a_broker_waits_if_no_visit_of_it_is_known() -> None:
    assert story_of(facts(states={"product": "shelved"})).fate == Fate.WAITING
    assert story_of(facts(visit(1), states={"product": "shelved"})).fate == Fate.READ
    assert story_of(facts(visit(1, "retry"), states={"product": "shelved"})).fate == Fate.ENDED


def test_a_url_that_nobody_met_is_refused_or_was_never_seen():
    assert (story_of(facts(refusal="host")).fate, story_of(facts(refusal="host")).why) == (Fate.REFUSED, "host")
    assert story_of(facts(states={"product": "unknown"})).fate == Fate.NEVER


def test_what_the_gate_says_now_does_not_undo_what_happened():
    assert story_of(facts(visit(1), states={"product": "ended"}, refusal="host")).fate == Fate.READ


def test_of_several_routes_the_one_whose_task_is_still_there_comes_first():
    story = story_of(facts(visit(1), states={"product": "ended", "reviews": "dead", "listing": "unknown"}))

    assert story.fate == Fate.DEAD
    assert story.identity is not None
    assert story.identity.route == "reviews"


def test_the_fate_is_told_by_the_last_visit_of_the_job_that_was_asked_about():
    story = story_of(
        facts(
            visit(1, why="gone: 404", at=1.0), visit(1, job="shop-2", at=2.0), states={"product": "ended"}, job="shop-1"
        )
    )

    assert (story.fate, story.why) == (Fate.DROPPED, "gone: 404")


def test_a_page_of_an_earlier_job_is_told_although_this_job_has_not_met_it():
    story = story_of(facts(visit(1, "bury", why="blocked: 403"), job="shop-2"))

    assert (story.fate, story.why, story.identity) == (Fate.DEAD, "blocked: 403", None)


# What happened


def test_a_life_begins_where_it_was_found():
    [found, _] = story_of(facts(visit(1))).lives[0].events

    assert (found.what, found.at, found.parent, found.depth) == (What.FOUND, 999.0, "https://shop.example/", 1)


def test_a_task_that_was_never_visited_is_told_from_the_frontier():
    there = TaskStatus(state="waiting", created_at=990.0, parent="https://shop.example/c")
    story = story_of(facts(identities=(Identity(route="product", fingerprint=7, whereabouts=there),)))

    assert happened(story) == [("found", 0)]
    assert story.lives[0].events[0].parent == "https://shop.example/c"


def test_retries_and_snoozes_are_visits_like_any_other():
    story = story_of(facts(visit(1, "snooze"), visit(2, "retry"), visit(3, attempt=1)))

    assert happened(story) == [("found", 0), ("visit", 1), ("visit", 2), ("visit", 3)]


def test_an_attempt_that_nobody_settled_means_that_a_worker_died():
    story = story_of(facts(visit(1, "retry"), visit(2, attempt=3)))

    assert happened(story) == [("found", 0), ("visit", 1), ("lost", 2), ("visit", 2)]


def test_a_worker_that_died_before_the_first_line_is_noticed():
    assert happened(story_of(facts(visit(1, attempt=1)))) == [("found", 0), ("lost", 1), ("visit", 1)]


def test_a_seed_may_bring_attempts_along():
    assert happened(story_of(facts(visit(1, attempt=1, parent="")))) == [("found", 0), ("visit", 1)]


def test_where_the_beginning_is_left_out_nothing_is_made_of_it():
    assert happened(story_of(facts(visit(5, attempt=2), earlier=True))) == [("found", 0), ("visit", 0)]


@pytest.mark.parametrize("attempt", [0, 3])
def test_a_visit_after_the_burial_means_that_it_was_revived(attempt):
    story = story_of(facts(visit(1, "bury", attempt=attempt, parent=""), visit(2)))

    assert happened(story) == [("found", 0), ("visit", 1), ("revived", 0), ("visit", 2)]


def test_jobs_and_routes_are_lives_of_their_own_in_the_order_of_their_beginning():
    story = story_of(
        facts(
            visit(1, job="shop-2", at=5000.0, found_at=4999.0),
            visit(2),
            visit(3, fingerprint=8, route="listing", found_at=900.0),
            visit(4),
        )
    )

    assert [(life.job, life.route) for life in story.lives] == [
        ("shop-1", "listing"),
        ("shop-1", "product"),
        ("shop-2", "product"),
    ]
    assert happened(story, 1) == [("found", 0), ("visit", 1), ("visit", 2)]


def test_a_task_that_waits_again_in_a_new_job_has_two_lives():
    there = TaskStatus(state="waiting", created_at=5000.0)
    story = story_of(
        facts(visit(1), job="shop-2", identities=(Identity(route="product", fingerprint=7, whereabouts=there),))
    )

    assert [life.job for life in story.lives] == ["shop-1", "shop-2"]


def test_an_identity_is_named_as_the_graveyard_names_it():
    assert Identity(route="product", fingerprint=-1).id == "f" * 16


# The rule


@pytest.mark.parametrize(
    ("why", "rule"),
    [
        ("host", "a.example, b.example"),
        ("excluded", "/p/"),
        ("not included", "/x, /y"),
        ("depth", "3"),
        ("trap: session id", ""),
    ],
)
def test_the_rule_that_keeps_a_url_out_is_named(why, rule):
    scope = Scope(
        hosts=["b.example", "a.example"], exclude=["/nothing", "/p/", "17"], include=["/x", "/y"], max_depth=3
    )

    assert rule_behind(scope, URL, why) == rule


def test_stories_do_not_depend_on_what_they_are_not_told():
    """Every field of a visit may be empty: older lines have less."""
    bare = msgspec.structs.replace(visit(1), parent="", found_at=0.0, depth=0, why="", outcome="")

    assert story_of(facts(bare)).fate == Fate.ENDED
    assert story_of(facts(bare)).lives[0].events[0].at == bare.leased_at
