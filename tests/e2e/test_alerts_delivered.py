"""Every alert fires and resolves on real frontiers, and both messages reach a real HTTP server and a real SMTP server.

The clock of the frontier is turned by hand: half an hour of a job takes a second."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.contract.conftest import SqliteFileBench
from tests.contract.redis_servers import RedisBench
from tests.e2e.alert_receivers import HttpReceiver, MailReceiver, http_receiver, mail_receiver
from tests.e2e.alert_rigs import Rig

from trotline.adapters.alerts.mail import Mail
from trotline.adapters.alerts.webhook import Webhook
from trotline.coordinator.frontier_outage_alert import FrontierWatch
from trotline.model.job import WorkerInfo
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done, Retry, Snooze
from trotline.model.proxy_pool import MemberResult, lane_of
from trotline.model.secret import Secret
from trotline.model.verdict import Kind
from trotline.model.work_stats import BOUNDS, Timing, WorkStats
from trotline.rules import archive_loss_note
from trotline.rules.alerts import RULES
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.broker_shelves import unreachable
from trotline.testing.frontier_contract.bench import SHOP, lease_all, steady
from trotline.testing.frontier_contract.pool_bench import POOL, give, pool_with, register, take, through

MINUTE = 60.0
Scene = Callable[[Rig], Awaitable[None]]
SCENES: dict[str, Scene] = {}


def scene(rule: str) -> Callable[[Scene], Scene]:
    def named(play: Scene) -> Scene:
        SCENES[rule] = play
        return play

    return named


@scene("queue")
async def _queue(rig: Rig) -> None:
    await rig.open()
    await rig.put(2_000)

    async def grow() -> None:
        await rig.visit(2)
        await rig.put(92)

    await rig.after(20.5 * MINUTE, grow)
    await rig.after(9 * MINUTE, lambda: rig.visit(100))


@scene("errors")
async def _errors(rig: Rig) -> None:
    await rig.open()
    await rig.put(500)
    await rig.after(5 * MINUTE, lambda: rig.visit(10))
    await rig.visit(60, Retry(wait=0.0, why="503"))
    await rig.after(2 * MINUTE, lambda: rig.visit(3))
    await rig.after(7 * MINUTE, lambda: rig.visit(10))


@scene("blocks")
async def _blocks(rig: Rig) -> None:
    await rig.open()
    await rig.put(500)
    await rig.after(5 * MINUTE, lambda: rig.visit(10))
    await rig.visit(40, Retry(wait=0.0, why="blocked: 403"))
    await rig.after(2 * MINUTE, lambda: rig.visit(3))
    await rig.after(7 * MINUTE, lambda: rig.visit(10))


@scene("stalled")
async def _stalled(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    await rig.after(8 * MINUTE)
    await rig.visit(3)
    await rig.after(2 * MINUTE)


@scene("lanes")
async def _lanes(rig: Rig) -> None:
    await rig.open()
    await rig.put(50)
    [lease] = await lease_all(rig.client, "w", 1)
    await rig.client.settle("w", [Settlement(lease, Done(), news=LaneFeedback(Kind.THROTTLED, rest=5 * MINUTE))])
    await rig.after(4 * MINUTE)
    await rig.after(3 * MINUTE)
    # The probe is answered.
    [lease] = await lease_all(rig.client, "w", 1)
    await rig.client.settle("w", [Settlement(lease, Done(), news=LaneFeedback(Kind.OK))])
    await rig.after(2 * MINUTE)


@scene("frontier")
async def _frontier(rig: Rig) -> None:
    """Its state is in memory: no job is needed, and none could be read."""
    watch = FrontierWatch("redis://db", "host-1", ["shop"], rig.plan, TurnedClock(rig.bench), rig.bench.now)
    for seconds, error in ((5.0, "redis://u:hunter2@db: refused"), (25.0, "redis://u:hunter2@db: refused"), (60.0, "")):
        rig.bench.jump(seconds)
        if error:
            watch.failed(error)
        else:
            watch.worked()
        watch.step(_silent)
        await watch.deliver(_silent)


def _silent(event: str, text: str, **_: object) -> None:
    assert "hunter2" not in text, event


class TurnedClock:
    def __init__(self, bench: Any) -> None:
        self.now = bench.now

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


@scene("empty")
async def _empty(rig: Rig) -> None:
    await rig.open()
    await rig.put(300)
    await rig.visit(200, links_known=1)
    await rig.after(2 * MINUTE)
    await rig.visit(1, records=1)
    await rig.after(2 * MINUTE)


@scene("deadline")
async def _deadline(rig: Rig) -> None:
    await rig.open(steady(deadline=3600.0))
    await rig.put(2_000)
    await rig.client.seal()
    await rig.after(15 * MINUTE, lambda: rig.visit(2))
    await rig.visit(1_800)
    await rig.after(6 * MINUTE, lambda: rig.visit(10))


async def _nothing_free(rig: Rig, pool: str) -> None:
    await rig.open()
    rig.about["w"] = WorkerInfo(pools=(pool,))
    await register(rig.bench, pool_with(1, 2, name=pool, rest=1200.0))
    await rig.client.put(through(5, pool=pool))
    for _ in range(2):
        [lease] = await take(rig.client, "w", 1, pools=(pool,))
        await give(rig.client, lease, MemberResult.BLOCKED)
    await rig.after(4 * MINUTE)
    await (await rig.bench.proxy_pools()).release(pool, lane_of(SHOP, pool))
    await rig.client.lease("w", 1, pools=(pool,))
    await rig.after(2 * MINUTE)


@scene("proxies")
async def _proxies(rig: Rig) -> None:
    await _nothing_free(rig, POOL)


@scene("accounts")
async def _accounts(rig: Rig) -> None:
    await _nothing_free(rig, "@buyers")


async def _members_down(rig: Rig, pool: str) -> None:
    await rig.open()
    rig.about["w"] = WorkerInfo(pools=(pool,))
    await register(rig.bench, pool_with(1, 2, 3, name=pool))
    await rig.client.put(through(30, pool=pool))

    async def work(bad: tuple[int, ...]) -> None:
        for _ in range(9):
            for lease in await take(rig.client, "w", 1, pools=(pool,)):
                result = MemberResult.FAULT if lease.member in bad else MemberResult.GOOD
                await give(rig.client, lease, result, outcome=Snooze(0.0, "again"))

    await rig.after(3 * MINUTE, lambda: work((1, 2)))
    await rig.after(8 * MINUTE, lambda: work(()))


@scene("proxies_down")
async def _proxies_down(rig: Rig) -> None:
    await _members_down(rig, POOL)


@scene("accounts_down")
async def _accounts_down(rig: Rig) -> None:
    await _members_down(rig, "@buyers")


@scene("database")
async def _database(rig: Rig) -> None:
    await rig.open()
    await rig.put(100)
    counts = [0] * (len(BOUNDS) + 1)

    async def commit(seconds: float) -> None:
        counts[BOUNDS.index(seconds)] += 10
        rig.about["w"] = WorkerInfo(stats=WorkStats(commit=Timing(0.0, tuple(counts))))
        await rig.visit(1)

    await rig.after(8 * MINUTE, lambda: commit(5.0))
    await rig.after(3 * MINUTE, lambda: commit(0.1))


@scene("sink")
async def _sink(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    await rig.client.lease("w", 1)
    rig.about["w"] = WorkerInfo(held_back="sink is unreachable: postgresql://u:hunter2@db: refused")
    await rig.after(3 * MINUTE)
    rig.about["w"] = WorkerInfo()
    await rig.after(2 * MINUTE)


@scene("archive")
async def _archive(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    await rig.client.lease("w", 1)
    rig.about["w"] = WorkerInfo(held_back="archive is unreachable: s3://pages at http://u:hunter2@s3: refused")
    await rig.after(3 * MINUTE)
    rig.about["w"] = WorkerInfo()
    await rig.after(2 * MINUTE)


@scene("archive_lost")
async def _archive_lost(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    console = rig.client.opened.console
    lost = ArchiveNote(lost=12, place="s3://pages")
    assert await console.write_note(archive_loss_note.NOTE, archive_loss_note.encode(lost), 0)
    await rig.after(2 * MINUTE)
    none = ArchiveNote(lost=0)
    assert await console.write_note(archive_loss_note.NOTE, archive_loss_note.encode(none), 1)
    await rig.after(2 * MINUTE)


@scene("broker")
async def _broker(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    rig.broker = unreachable("amqp://u:hunter2@broker: connection refused")
    await rig.after(3 * MINUTE)
    rig.broker = ""
    await rig.after(2 * MINUTE)


@scene("coverage")
async def _coverage(rig: Rig) -> None:
    rig.before = {"kind records: product": 1000, "field set: product / price": 900}
    await rig.open()
    await rig.put(10)
    await rig.visit(1, **{"kind_records:_product": 300, "field_set:_product_/_price": 210, "records": 300})
    await rig.after(2 * MINUTE)
    await rig.visit(1, **{"kind_records:_product": 2000, "field_set:_product_/_price": 1990, "records": 300})
    await rig.after(2 * MINUTE)


@scene("worker")
async def _worker(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    await lease_all(rig.client, "lost", 3)
    await rig.after(2 * MINUTE)
    await rig.visit(1)
    assert (await rig.client.progress()).tallies["rescued"] == 3
    await rig.after(8 * MINUTE, lambda: rig.client.beat("w"))


@scene("proxies_file")
async def _proxies_file(rig: Rig) -> None:
    await rig.open()
    await rig.put(10)
    broken = WorkerInfo(host="node-1", proxies_trouble="proxies.toml: line 3: not a value")
    await rig.after(MINUTE, lambda: rig.client.beat("w", broken))
    await rig.after(MINUTE, lambda: rig.client.beat("w", WorkerInfo(host="node-1")))


@pytest.fixture
async def received() -> AsyncIterator[tuple[HttpReceiver, MailReceiver]]:
    async with http_receiver() as http, mail_receiver() as mail:
        yield http, mail


@pytest.fixture(params=[SqliteFileBench, RedisBench], ids=["sqlite", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    made = request.param()
    yield made
    await made.close()


def test_there_is_a_scene_for_every_rule() -> None:
    assert set(SCENES) == set(RULES)


@pytest.mark.parametrize("rule", SCENES)
async def test_an_alert_fires_and_resolves_and_both_are_delivered(
    rule: str, bench: Any, received: tuple[HttpReceiver, MailReceiver]
) -> None:
    http, mail = received
    receivers = (
        Webhook("ops", Secret(f"{http.url}/hook"), clock=bench.now),
        Mail("post", f"smtp://127.0.0.1:{mail.port}", ["ops@example.org"], "trotline@example.org"),
    )
    rig = Rig(bench, receivers)
    try:
        await SCENES[rule](rig)
    finally:
        await rig.close()

    assert [seen for seen in http.seen() if seen.startswith(f"{rule} ")] == [f"{rule} firing", f"{rule} resolved"]
    about = [each for each in mail.mails if RULES[rule] in each.get_content()]
    assert len(about) == 2
    assert "next: trotline" in about[0].get_content()
    assert about[0]["Message-ID"] in about[1]["In-Reply-To"]
    assert all(each["Auto-Submitted"] == "auto-generated" for each in mail.mails)
    assert "hunter2" not in "".join(each.get_content() for each in mail.mails)
