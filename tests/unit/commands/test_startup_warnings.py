"""What a run says about others on the same job."""

import os
from collections.abc import Sequence
from socket import gethostname
from types import SimpleNamespace
from typing import Any

from trotline.commands.startup_warnings import about_others
from trotline.model.job import Job, WorkerInfo, WorkerView
from trotline.ports.frontier import DEAD_AFTER

NO_PROCESS = 2**22 + 1
"""More than the largest pid."""


def opened(*workers: WorkerView) -> Any:
    async def seen() -> Sequence[WorkerView]:
        return workers

    return SimpleNamespace(job=Job(id="shop-1", spider="shop", started_at=0.0), console=SimpleNamespace(workers=seen))


def worker(host: str, process: int, silent_for: float = 1.0) -> WorkerView:
    return WorkerView(
        name=f"{host}-{process}", silent_for=silent_for, leased=1, about=WorkerInfo(host=host, process=process)
    )


async def test_a_process_of_this_machine_that_is_gone_is_no_other_run() -> None:
    here = gethostname()
    said = await about_others(opened(worker(here, os.getpid()), worker(here, NO_PROCESS), worker("tea", NO_PROCESS)))

    places = ", ".join(sorted((f"process {os.getpid()} on {here}", f"process {NO_PROCESS} on tea")))
    assert said == [
        f"another run works on shop-1 ({places}): both share its pages and its pace",
        f"a run of shop-1 has ended without saying so (process {NO_PROCESS} on {here}): the pages that it held are"
        " finished, or visited again within 15 s",
    ]


async def test_without_others_nothing_is_said() -> None:
    assert await about_others(opened()) == []
    assert await about_others(opened(worker("tea", 7, silent_for=DEAD_AFTER))) == []
