"""Logins of proxy gateways: what each provider gets, and ids that all workers agree on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.proxy_logins import LETTERS, PROVIDERS, LoginTemplate, login, session_id

SESSION = "abcd1234"

LOGINS = {
    "brightdata": (
        "brd-customer-hl_1-zone-z1", "brd-customer-hl_1-zone-z1-country-us-session-abcd1234", "pw", 0,
    ),
    "oxylabs": ("anna", "customer-anna-cc-US-sessid-abcd1234-sesstime-10", "pw", 10),
    "decodo": ("anna", "user-anna-country-us-session-abcd1234-sessionduration-10", "pw", 10),
    "thordata": ("anna", "td-customer-anna-country-us-sessid-abcd1234-sesstime-10", "pw", 10),
    "iproyal": ("anna", "anna", "pw_country-us_session-abcd1234_lifetime-10m", 10),
}  # fmt: skip


@pytest.mark.parametrize("provider", LOGINS)
def test_each_provider_gets_its_parameters_where_it_wants_them(provider: str) -> None:
    user, sent_user, sent_password, minutes = LOGINS[provider]
    made = login(PROVIDERS[provider], user, "pw", session=SESSION, country="us", minutes=minutes)
    assert (made.user, made.password) == (sent_user, sent_password)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_parameters_that_are_not_given_are_left_out(provider: str) -> None:
    made = login(PROVIDERS[provider], "anna", "pw")
    assert made.password == "pw"  # noqa: S105
    assert made.user in ("anna", "customer-anna", "user-anna", "td-customer-anna")


def test_a_session_time_without_a_session_is_left_out() -> None:
    assert login(PROVIDERS["decodo"], "anna", "pw", minutes=10).user == "user-anna"


@pytest.mark.parametrize(
    ("provider", "options", "why"),
    [
        ("oxylabs", {"minutes": 1441}, "1 to 1440 minutes"),
        ("thordata", {"minutes": 91}, "1 to 90 minutes"),
        ("thordata", {"minutes": -1}, "1 to 90 minutes"),
        ("brightdata", {"minutes": 5}, "no session time"),
        ("decodo", {"country": "usa"}, "two letters"),
        ("decodo", {"country": "u-"}, "two letters"),
        ("decodo", {"session": "a-b"}, "characters"),
    ],
)
def test_what_the_provider_does_not_take_is_refused(provider: str, options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        login(PROVIDERS[provider], "anna", "s3cret77", **options)
    assert "s3cret77" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"user": "{user}-{sesion}"}, "unknown field {sesion}"),
        ({"alphabet": "aab"}, "different characters"),
        ({"alphabet": "ab", "length": 3}, "fewer than 1,000"),
        ({"length": 0}, "1 to 64"),
    ],
)
def test_a_template_that_cannot_work_is_refused_when_it_is_made(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        LoginTemplate(**options)


def test_a_country_without_a_place_in_the_template_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for a country"):
        login(LoginTemplate(user="{user}-{session}"), "anna", "pw", country="us")


@given(password=st.text(max_size=30), user=st.text(max_size=30))
def test_a_password_that_looks_like_a_template_is_sent_as_it_is(user: str, password: str) -> None:
    made = login(PROVIDERS["iproyal"], user, password, session="abcd1234")
    assert (made.user, made.password) == (user, f"{password}_session-abcd1234")


Parts = st.tuples(st.text(max_size=8), st.integers(0, 10_000), st.text(max_size=12), st.integers(0, 50))


@given(one=Parts, other=Parts, provider=st.sampled_from(sorted(PROVIDERS)))
def test_ids_fit_the_provider_and_differ_when_any_part_differs(one: tuple, other: tuple, provider: str) -> None:
    template = PROVIDERS[provider]
    ids = [
        session_id(template, salt=salt, slot=slot, lane=lane, generation=generation)
        for salt, slot, lane, generation in (one, other, one)
    ]
    assert ids[0] == ids[2]
    assert (ids[0] == ids[1]) == (one == other)
    assert all(len(made) == template.length and set(made) <= set(template.alphabet) for made in ids)


def test_ids_are_the_same_in_every_process_and_release() -> None:
    """A change of these would move the sessions of a running fleet to other exits."""
    template = LoginTemplate(user="{user}-{session}")
    assert session_id(template, salt="s", slot=7, lane="shop.example via eu") == "JCjI85Q2Oe"
    assert set(LETTERS) == set(template.alphabet)


def test_a_login_is_not_shown() -> None:
    assert "pw" not in repr(login(PROVIDERS["iproyal"], "anna", "pw", session=SESSION))
