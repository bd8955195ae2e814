"""`pace` shows and sets what holds for every job."""

import json

import pytest

from tests.unit.cli.conftest import Call


def test_pace_shows_sets_and_clears_what_holds_for_every_job(call: Call, job: str) -> None:
    said = call("pace", "--host", "shop.example")[1]
    assert "shop.example in sqlite:" in said
    assert f"  {job}" in said
    assert "1000/s, at most 8 visits at once" in said

    said = call("pace", "--host", "shop.example", "2/s", "--concurrency", "3")[1]
    assert "2/s, at most 3 visits at once, for every job" in said
    assert "--clear" in said

    [line] = call("pace", "--host", "shop.example", "--clear", "--json")[1].splitlines()
    told = json.loads(line)
    assert told["ordered"] is None
    assert told["interval"] == 0.001
    assert "never visited" in call("pace", "--host", "other.example")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("2/week",), "is not a rate"),
        (("2/s", "--clear"), "--clear takes the pace back"),
        (("--concurrency", "3"), "--concurrency belongs to a pace"),
    ],
)
def test_pace_refuses_what_has_no_effect(call: Call, job: str, words: tuple[str, ...], said: str) -> None:
    code, _, err = call("pace", "--host", "shop.example", *words)

    assert code == 2
    assert said in err
