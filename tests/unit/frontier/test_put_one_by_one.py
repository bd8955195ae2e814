"""Tasks of entries that other programs wrote: one that cannot be stored holds up no other."""

from collections.abc import Sequence

import pytest

from trotline.errors import FrontierUnreachable
from trotline.frontier.put_one_by_one import put_each, refusal
from trotline.model.lease import Admission
from trotline.model.task import Task


async def put(tasks: Sequence[Task]) -> list[Admission]:
    for task in tasks:
        task.url.encode()
    return [Admission.NEW] * len(tasks)


async def test_a_task_that_cannot_be_stored_is_named_and_the_others_are_stored() -> None:
    answers = await put_each(put, [Task(url=url, route="parse") for url in ("a", "\ud800", "b")])

    assert answers[::2] == [Admission.NEW, Admission.NEW]
    assert refusal(answers[1]).startswith("defect: UnicodeEncodeError")
    assert [refusal(answer) for answer in answers[::2]] == ["", ""]


def test_what_a_draining_job_refuses_is_not_stored() -> None:
    assert "draining" in refusal(Admission.REFUSED)
    assert refusal(Admission.DUPLICATE) == ""


async def test_an_error_of_the_server_is_none_of_a_task() -> None:
    async def down(tasks: Sequence[Task]) -> list[Admission]:
        raise FrontierUnreachable("down")

    with pytest.raises(FrontierUnreachable):
        await put_each(down, [Task(url="a", route="parse")])


async def test_nothing_asks_nothing() -> None:
    async def never(tasks: Sequence[Task]) -> list[Admission]:
        raise AssertionError

    assert await put_each(never, []) == []
