"""The session of an account as it is stored: bounded, and hostile states are not used."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.account import LARGEST_SESSION, Session, StoredCookie
from trotline.rules import account_sessions


def cookies(host: str, number: int, size: int) -> tuple[StoredCookie, ...]:
    return tuple(StoredCookie(f"https://{host}/", f"c{n}={'v' * size}", float(n)) for n in range(number))


def test_a_host_with_large_cookies_does_not_displace_those_of_another() -> None:
    login = cookies("shop.example", 2, 100)
    session = Session(cookies=(*login, *cookies("other.example", 6, 4000)))

    state, dropped = account_sessions.encoded(session)

    assert len(state) <= LARGEST_SESSION
    assert dropped == 3
    assert account_sessions.decoded(state, "").cookies[:2] == login


@given(st.binary(max_size=200))
def test_garbage_is_a_new_session(state: bytes) -> None:
    assert account_sessions.decoded(state, "a").login == "a"


@pytest.mark.parametrize(
    "session",
    [
        Session(cookies=(StoredCookie("https://shop.example/", "a=1", float("nan")),), logged_in=True),
        Session(logged_in_at=float("inf"), logged_in=True),
        Session(moves=-1, logged_in=True),
        Session(cookies=cookies("shop.example", 5, 4000), logged_in=True),
    ],
)
def test_a_hostile_state_is_a_new_session(session: Session) -> None:
    assert not account_sessions.decoded(msgspec.msgpack.encode(session), "").logged_in


@pytest.mark.parametrize(
    ("path", "is_login"),
    [
        ("/login", True),
        ("/account/Sign-In", True),
        ("/users/login.php", True),
        ("/blog/in", False),
        ("/loginfo/a", False),
    ],
)
def test_login_pages_are_recognized_by_their_path(path: str, is_login: bool) -> None:
    assert account_sessions.leads_to_login(path) is is_login
