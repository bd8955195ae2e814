"""F49: Retry-After in every form, honoured up to an hour."""

import pytest
from tests.e2e.torture.conftest import Rack

from trotline.model.verdict import Kind
from trotline.rules.verdicts import LONGEST_REST
from trotline.testing.torture.content import FORMS

WAITS = {
    "seconds": 120.0,
    "zero": 0.0,
    "fraction": 1.5,
    "years": LONGEST_REST,
    "huge": LONGEST_REST,
    "far": LONGEST_REST,
    "digits": 120.0,
}
"""What the sensible forms mean; every other one says nothing."""


@pytest.mark.parametrize("form", sorted(FORMS))
async def test_f49_every_form_is_a_wait_or_nothing(rack: Rack, form: str) -> None:
    verdict = (await rack.visit(f"/retry-after/{form}")).verdict
    assert (verdict.kind, verdict.retry_after) == (Kind.THROTTLED, WAITS.get(form))
    assert not verdict.final


@pytest.mark.parametrize("form", ["seconds", "years"])
async def test_f49_503_with_a_wait_is_throttled_and_without_one_broken(rack: Rack, form: str) -> None:
    assert (await rack.visit(f"/retry-after/{form}/503")).verdict.kind is Kind.THROTTLED
    assert (await rack.visit("/retry-after/garbage/503")).verdict.kind is Kind.BROKEN


async def test_f49_a_date_is_the_seconds_until_then(rack: Rack) -> None:
    wait = (await rack.visit("/retry-after/date/600")).verdict.retry_after
    assert wait is not None
    assert 500 < wait <= 600
    assert (await rack.visit("/retry-after/date/-600")).verdict.retry_after is None
