"""What a worker says of itself while it waits: once, and also when it is over."""

from collections.abc import Iterator

import pytest

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.open_job import open_job
from trotline.cli.work import _Voice
from trotline.commands import work as commands
from trotline.commands.join_job import Found
from trotline.commands.work import Hands, News, What, WorkPlan
from trotline.config.settings import Settings
from trotline.errors import FrontierUnreachable, SinkUnreachable
from trotline.model.job import LaneRules
from trotline.ports.backend import OpenJob
from trotline.spider.spider import Spider

SETTINGS = Settings(frontier="redis://queue/0", sink="postgresql://db/shop")
AWAY = FrontierUnreachable("cannot reach the server")


class Seen(Exception):
    """The scene is over."""


class Looks:
    """A search whose looks are written down beforehand: an error, a job, or nothing."""

    def __init__(self, *looks: Exception | OpenJob | None) -> None:
        self._looks: Iterator[Exception | OpenJob | None] = iter((*looks, Seen("over")))

    async def look(self) -> Found:
        seen = next(self._looks)
        if isinstance(seen, Exception):
            raise seen
        return Found(opened=seen)

    async def close(self) -> None:
        """Nothing was opened."""


async def told(monkeypatch: pytest.MonkeyPatch, looks: Looks) -> list[News]:
    """The news of a worker that has stored rows before."""

    async def none(*_: object) -> list[str]:
        return []

    said: list[News] = []
    monkeypatch.setattr(commands, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(commands, "retire_old", none)
    monkeypatch.setattr(commands, "Search", lambda *_, **__: looks)
    plan = WorkPlan(ref="shop.py", settings=SETTINGS)
    member = commands._Member(plan, Spider("shop"), Hands(said.append, lambda _: None, lambda: None), [])
    member._worked = True
    with pytest.raises(Seen):
        await member.until_end()
    return said


async def test_a_frontier_that_is_back_is_said_to_be(monkeypatch: pytest.MonkeyPatch):
    said = await told(monkeypatch, Looks(None, AWAY, AWAY, None, None, AWAY, None))

    assert [news.what for news in said] == [What.WAITS, What.AWAY, What.BACK, What.AWAY, What.BACK]


class NoSink:
    async def open(self) -> None:
        raise SinkUnreachable("cannot connect to postgresql://db/shop")

    async def close(self) -> None:
        """It never was open."""


async def test_a_sink_that_is_away_is_not_called_a_frontier_and_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))

    async def fine(*_: object, **__: object) -> None:
        """Validators are of no interest here."""

    monkeypatch.setattr(commands.components, "check_validators", fine)
    monkeypatch.setattr(commands.backends, "open_sink", lambda *_: NoSink())
    said = await told(monkeypatch, Looks(opened, opened, opened))
    await jobs.close()

    assert [(news.what, news.reason) for news in said] == [(What.SINK_AWAY, "cannot connect to postgresql://db/shop")]


@pytest.mark.parametrize(
    ("what", "line"),
    [
        (What.AWAY, "the frontier is unreachable, and asked again every second: no route"),
        (What.SINK_AWAY, "the sink is unreachable, and asked again every second: no route"),
        (What.BACK, "the frontier is back"),
    ],
)
def test_each_news_has_its_line(what: What, line: str, capsys: pytest.CaptureFixture[str]):
    reason = "" if what is What.BACK else "no route"
    _Voice("shop.py", Spider("shop"), SETTINGS, quiet=False, json=False).tell(News(what=what, reason=reason))

    assert capsys.readouterr().out.strip() == line
