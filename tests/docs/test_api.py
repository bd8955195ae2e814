"""docs/reference/api.md and the route table are the same."""

from scripts.api_reference import PAGE, updated

from trotline.web.connections import FIRST_WITHIN, MOST_CONNECTIONS, MOST_OF_AN_ADDRESS
from trotline.web.openapi import _SAID
from trotline.web.server import HEADERS_WITHIN
from trotline.web.server_sent_events import BLOCKED, FOR_OPERATORS, LONGEST, MOST_OF_A_SESSION, MOST_STREAMS


def test_every_route_is_in_the_reference_as_it_is():
    assert PAGE.read_text() == updated(PAGE.read_text()), "run: python -m scripts.api_reference"


def test_the_limits_in_the_text_are_those_of_the_code():
    text = PAGE.read_text()
    for said in (
        f"At most {MOST_STREAMS} streams in all, {MOST_STREAMS - FOR_OPERATORS} of those who may only look, and"
        f" {MOST_OF_A_SESSION} of a session",
        f"{BLOCKED:g} s is dropped",
        f"after {LONGEST / 60:g} minutes",
        f"within {HEADERS_WITHIN:g} s ({FIRST_WITHIN:g} s in a new connection)",
        f"{MOST_CONNECTIONS} connections, {MOST_OF_AN_ADDRESS} of one address",
    ):
        assert said in " ".join(text.split()), said


def test_every_status_of_an_error_is_explained():
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| 4") or "| 50" in line]
    named = {int(number) for row in rows for number in row.replace(",", " ").split() if number.isdigit()}
    # 422 and 501 are of single routes, and say themselves what is missing.
    assert set(_SAID) - {500, 422, 501} <= named
