"""How a job ended, told from its books."""

import pytest

from trotline.commands.run_report import Ending, ending_of
from trotline.model.job import LaneRules, Progress, State


def books(**more: object) -> Progress:
    fields: dict[str, object] = {"waiting": 0, "leased": 0, "done": 0, "dead": 0}
    return Progress(**(fields | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("progress", "ending"),
    [
        (books(waiting=1), None),
        (books(waiting=1, state=State.PAUSED), None),
        (books(waiting=1, state=State.CANCELLED), Ending.CANCELLED),
        (books(done=1, finished_at=9.0), Ending.EMPTY),
        (books(done=1, finished_at=9.0, tallies={"records": 1}), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"dropped: unchanged: 304": 1}), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"tasks for spider products": 1}), Ending.FINISHED),
        (books(done=1, dead=1, finished_at=9.0, tallies={"records": 1}), Ending.FINISHED_WITH_DEAD),
        (books(done=1, finished_at=9.0, tallies={"records": 1, "records rejected": 1}), Ending.FINISHED_WITH_DEAD),
        (books(done=1, finished_at=9.0, tallies={"records": 1}, state=State.CANCELLED), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"records": 1, "links refused: trap: same text": 1}), Ending.CUT),
        (books(done=1, finished_at=9.0, tallies={"records": 1, "links refused: depth": 1}), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"links refused: trap: same text": 1}), Ending.EMPTY),
    ],
)
def test_how_a_job_ended_stands_in_its_books(progress: Progress, ending: Ending | None):
    assert ending_of(progress, LaneRules(own_limits={"max_depth": 3})) is ending
