"""Every limit is finite."""

import pytest

from trotline.model.limits import MIB, Limits

NAMES = Limits.__struct_fields__


def test_the_defaults_are_the_documented_ones():
    limits = Limits()

    assert (limits.wire_body, limits.decoded_body, limits.expansion) == (10 * MIB, 32 * MIB, 100)
    assert (limits.connect, limits.total, limits.parse, limits.redirects) == (10.0, 60.0, 10.0, 10)
    assert (limits.url, limits.seed_url, limits.links) == (2_083, 8_192, 200_000)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_no_limit_can_be_switched_off(name, value):
    with pytest.raises(ValueError, match=f"limit {name} must be above 0 and finite"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_can_be_set(name):
    assert getattr(Limits(**{name: 1}), name) == 1
