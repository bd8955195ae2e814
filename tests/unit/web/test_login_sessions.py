"""Tokens, sessions and the limit of login attempts, on a clock that is turned."""

import pytest

from tests.unit.web.conftest import OPERATE, VIEW, Client
from trotline.model.secret import Secret
from trotline.web.login_sessions import IDLE, LIFE, MOST_SESSIONS, LoginLimit, Sessions, Tokens
from trotline.web.pages.login import local_path
from trotline.web.route_table import Role


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_has_its_role_and_no_other_has_one() -> None:
    tokens = Tokens(Secret(VIEW), Secret(OPERATE))
    assert (Role.VIEW, Role.OPERATE) == (tokens.role_of(VIEW), tokens.role_of(OPERATE))
    for wrong in ("", VIEW[:-1], VIEW + "v", VIEW.upper(), "\ud800", "\0"):
        assert tokens.role_of(wrong) is None
    assert VIEW not in repr(vars(tokens))


def test_a_session_ends_after_its_life_or_when_it_is_idle() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    name = sessions.begin(Role.VIEW)
    found = sessions.find(name)
    assert found is not None and name not in repr(vars(sessions))
    while clock.now < LIFE - IDLE:
        clock.now += IDLE - 1
        assert sessions.find(name) == found
    clock.now = LIFE
    assert sessions.find(name) is None

    idle = sessions.begin(Role.VIEW)
    clock.now += IDLE
    assert sessions.find(idle) is None
    assert sessions.find("") is None


def test_a_stream_that_looks_does_not_keep_a_session_alive() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    found = sessions.find(sessions.begin(Role.VIEW))
    assert found is not None
    clock.now += IDLE / 2
    assert sessions.lives(found[0])
    clock.now += IDLE / 2
    assert not sessions.lives(found[0])


def test_sessions_are_limited_in_number() -> None:
    sessions = Sessions(Clock())
    names = [sessions.begin(Role.VIEW) for _ in range(MOST_SESSIONS)]
    sessions.find(names[0])
    sessions.begin(Role.VIEW)
    assert sessions.find(names[0]) is not None
    assert sessions.find(names[1]) is None


def test_five_attempts_a_minute_from_one_address_and_twenty_in_all() -> None:
    clock = Clock()
    limit = LoginLimit(clock)
    assert [True] * 5 + [False] * 3 == [limit.attempt("a").allowed for _ in range(8)]
    others = [limit.attempt(f"b{number}").allowed for number in range(20)]
    assert [True] * 15 + [False] * 5 == others
    clock.now = 59.0
    assert 1.0 == pytest.approx(limit.attempt("a").again_in)
    clock.now = 60.0
    assert limit.attempt("a").allowed


async def test_wrong_tokens_are_limited_and_keep_nobody_out_who_has_a_right_one(guarded: Client) -> None:
    own = {"Origin": guarded.url}
    statuses = []
    for token in ["wrong"] * 6:
        answer = await guarded.call("POST", "/login", data={"token": token}, headers=own)
        statuses.append(answer.status)
    assert [401] * 5 + [429] == statuses
    assert 0 < int(answer.headers["Retry-After"]) <= 61
    # Behind a proxy all have one address.
    right = await guarded.call("POST", "/login", data={"token": OPERATE}, headers=own)
    assert 303 == right.status
    # A program with its token is not stopped by others' attempts; one with a wrong token is.
    assert 200 == (await guarded.get("/api/v1/jobs", token=VIEW)).status
    assert 429 == (await guarded.get("/api/v1/jobs", token=VIEW[:-1])).status


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/jobs/shop-1?tab=lanes", "/jobs/shop-1?tab=lanes"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/x\\y", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("", "/"),
    ],
)
def test_after_the_login_it_goes_to_our_own_pages_only(text: str, place: str) -> None:
    assert place == local_path(text)
