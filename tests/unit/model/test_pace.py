"""How fast a lane may be asked, as authors write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.pace import FASTEST, SLOWEST, Pace, Rate


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("2/s", 2.0),
        ("30/m", 0.5),
        ("500/h", 500 / 3600),
        ("1/d", 1 / 86400),
        ("0.5/s", 0.5),
        (" 2 / s ", 2.0),
        ("100000/s", 100_000.0),
    ],
)
def test_a_rate_is_read(text, per_second):
    rate = Rate.parse(text)

    assert rate.per_second == pytest.approx(per_second)
    assert rate.interval == pytest.approx(1 / per_second)


@pytest.mark.parametrize(
    "text",
    ["", " ", "2", "/s", "2/", "2/x", "2/s/s", "2 per s", "-1/s", "+1/s", "nan/s", "NaN/s", "inf/s", "1e9/s", "1,5/s",
     ".5/s", "2/S", "2/ms", None, 2, 2.0, b"2/s", True, ["2/s"]],
)  # fmt: skip
def test_what_is_no_rate_is_refused_with_the_forms_that_work(text):
    with pytest.raises(ValueError, match='is not a rate; write it like "2/s", "30/m" or "500/h"') as refused:
        Rate.parse(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("text", ["0/s", "0.0/h", "0.5/d", "100001/s", "9" * 400 + "/s"])
def test_a_rate_out_of_range_is_refused_with_the_range(text):
    with pytest.raises(ValueError, match='the slowest is "1/d", the fastest "100000/s"'):
        Rate.parse(text)


@given(st.text(max_size=12))
def test_any_text_is_a_rate_in_range_or_a_value_error(text):
    try:
        rate = Rate.parse(text)
    except ValueError:
        return
    assert SLOWEST <= rate.per_second <= FASTEST


@given(st.floats(SLOWEST, FASTEST))
def test_a_rate_is_shown_as_it_can_be_written(per_second):
    shown = str(Rate(per_second))
    count, unit = shown.split("/")

    assert float(count) / {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] == pytest.approx(per_second, rel=1e-4)


@pytest.mark.parametrize("text", ["2/s", "30/m", "500/h", "1/d", "1/s"])
def test_common_rates_are_shown_as_they_were_written(text):
    assert str(Rate.parse(text)) == text


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Pace("1/s"),
            'write Pace(rate=Rate.parse("1/s")), or give the text itself: Spider(',
        ),
        (lambda: Pace(1), "rate is 1, which is not a Rate"),
        (lambda: Pace(Rate(1.0), slowest="1/m"), 'Pace(slowest=Rate.parse("1/m"))'),
        (lambda: Pace(concurrency="8"), "concurrency is '8'; it must be an integer >= 1"),
        (lambda: Pace(concurrency=0), "concurrency is 0"),
        (lambda: Rate("1/s"), 'text is read by Rate.parse("2/s")'),
        (lambda: Rate(0), "Rate(0) is not a number of starts per second, above 0"),
        (lambda: Rate(-1.0), "above 0"),
        (lambda: Rate(float("nan")), "above 0"),
        (lambda: Rate(True), "above 0"),
    ],
)
def test_a_pace_that_would_fail_later_is_refused_where_it_is_written(make, said):
    with pytest.raises(ValueError) as refused:
        make()
    assert said in str(refused.value)
