"""What holds for every script: it fails before it writes, or not at all (docs/decisions/060)."""

import re
from math import inf, nan

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis.scripts import _FOLDER
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done, Outcome, Retry, Snooze
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import task

SCRIPTS = sorted(path.name for path in _FOLDER.iterdir() if path.name.endswith(".lua"))
OK = LaneFeedback(Kind.OK)


def text_of(name: str) -> str:
    """Without its comments."""
    return re.sub(r"--.*", "", (_FOLDER / name).read_text())


def arguments(text: str, at: int) -> list[str]:
    """Of the call whose bracket opens there."""
    depth, found, start = 0, [], at + 1
    for place in range(at, len(text)):
        letter = text[place]
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(letter, 0)
        if (letter == "," and depth == 1) or depth == 0:
            found.append(text[start:place])
            start = place + 1
        if depth == 0:
            break
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_list_is_unpacked_only_as_far_as_a_script_says(name: str) -> None:
    text = text_of(name)
    for found in re.finditer(r"(?<![\w.])unpack\(", text):
        told = arguments(text, found.end() - 1)
        assert len(told) == 3, f"{name}: unpack({', '.join(told)}) has no end: thousands of values fail, after writes"


@pytest.mark.parametrize("name", ["put.lua", "lease.lua", "settle.lua"])
def test_a_call_is_named_when_it_is_done(name: str) -> None:
    text = text_of(name)
    named = [found.start() for found in re.finditer(r'call\("(?:SET", last|HSET", P \.\. "calls")', text)]
    assert named, "it is named nowhere"
    assert text.rindex("close_books()") < min(named)


ODD_TASKS = {
    "a lane that is too long": task("https://shop.example/odd", lane="x" * 70_000),
    "a moment that is none": task("https://shop.example/odd", not_before=nan),
    "a moment that never comes": task("https://shop.example/odd", not_before=inf),
}


@pytest.mark.parametrize("odd", ODD_TASKS.values(), ids=ODD_TASKS)
async def test_a_task_that_cannot_be_kept_changes_nothing(odd: Task) -> None:
    bench = RedisBench()
    frontier = await bench.open()
    try:
        with pytest.raises(ValueError, match=r"lane|not_before"):
            await frontier.put([task("https://shop.example/1"), odd])
        assert (await frontier.progress()).admitted == 0
        assert await frontier.put([task("https://shop.example/1")])
    finally:
        await bench.close()


ODD_ENDS: dict[str, tuple[Outcome, dict[str, object]]] = {
    "a wait that is none": (Retry(nan, "again"), {}),
    "a wait without end": (Snooze(inf, "later"), {}),
    "a rest without end": (Done(), {"news": msgspec.structs.replace(OK, rest=inf)}),
    "a time that is none": (Done(), {"news": msgspec.structs.replace(OK, took=nan)}),
    "a count that is too large": (Done(), {"tallies": {"bytes": 2**62}}),
    "a count that is none": (Done(), {"tallies": {"bytes": 0.5}}),
    "a child that cannot be kept": (Done(), {"children": (ODD_TASKS["a lane that is too long"],)}),
}


@pytest.mark.parametrize("odd", ODD_ENDS.values(), ids=ODD_ENDS)
async def test_an_end_that_cannot_be_kept_changes_nothing(odd: tuple[Outcome, dict[str, object]]) -> None:
    outcome, more = odd
    bench = RedisBench()
    frontier = await bench.open()
    try:
        await frontier.put([task("https://shop.example/1"), task("https://shop.example/2")])
        one, other = await frontier.lease("w", 2)
        with pytest.raises(ValueError, match=r"not a time|not a count|long"):
            await frontier.settle("w", [Settlement(one, Done()), Settlement(other, outcome, **more)])  # type: ignore[arg-type]
        progress = await frontier.progress()
        assert (progress.leased, progress.done) == (2, 0)
        await frontier.settle("w", [Settlement(one, Done()), Settlement(other, Done())])
        assert (await frontier.progress()).done == 2
    finally:
        await bench.close()
