"""An option that was given to a command which does not have it."""

import pytest

from tests.unit.cli.conftest import Call


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("start", "shop.py", "--allow-private"), "--allow-private is an option of trotline work, "),
        (("work", "shop.py", "--seeds", "x"), "--seeds is an option of trotline run, trotline start\n"),
    ],
)
def test_the_commands_that_have_it_are_named(call: Call, words: tuple[str, ...], says: str) -> None:
    code, _, err = call(*words)
    assert code == 2
    assert "No such option" in err
    assert says in err
    assert f"Usage: trotline {words[0]}" in err


@pytest.mark.parametrize("words", [("start", "shop.py", "--nope"), ("watch", "shop", "--allow-private")])
def test_an_option_of_no_other_command_on_spiders_is_refused_as_usual(call: Call, words: tuple[str, ...]) -> None:
    code, _, err = call(*words)
    assert code == 2
    assert "is an option of" not in err
