"""What programs give to `App` and `trotline.run`: a wrong type is refused with what to write instead."""

from pathlib import Path
from typing import Any

import pytest

import trotline
from trotline import App, Spider, TrotlineError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sink": 3}, 'Give a URL (sink="rows.jsonl")'),
        ({"allow": "10.0.0.0/8"}, 'Write a list: allow=["10.0.0.0/8"]'),
        ({"allow": 3}, "Write a list"),
        ({"proxy": "http://user:hidden@proxy.example:3128"}, 'Proxy.parse("http://proxy.example:3128")'),
        ({"proxies": 3}, 'proxies="proxies.toml"'),
    ],
)
def test_a_place_of_a_wrong_type_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TrotlineError) as refused:
        App(**given)
    assert said in str(refused.value) and "hidden" not in str(refused.value)


def test_a_path_is_as_good_as_its_text(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("http://192.0.2.1:3128\n")
    App(proxies=tmp_path / "list.txt")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spider", "given", "said"),
    [
        ("shop.py", {}, "'shop.py' is not a Spider"),
        (Spider("shop"), {"slots": "3"}, "an integer from 1 to 4,096"),
        (Spider("shop"), {"slots": 0}, "an integer from 1 to 4,096"),
        (Spider("shop"), {"max_pages": "3"}, "an integer >= 1"),
        (Spider("shop"), {"max_pages": 0}, "an integer >= 1"),
    ],
)
async def test_a_run_of_something_else_is_refused(
    tmp_path: Path, spider: Any, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(TrotlineError) as refused:
        trotline.run(spider, **given)
    assert said in str(refused.value)
    async with App(sink=f"jsonl:{tmp_path / 'rows.jsonl'}") as app:
        with pytest.raises(TrotlineError) as refused:
            await app.work(spider, **given)
    assert said in str(refused.value)
