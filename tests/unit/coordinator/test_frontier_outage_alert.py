"""A frontier that is unreachable is an alert, which no job can keep: fired, sent, over, tried again."""

from typing import Any

from trotline.coordinator.alert_watch import AlertPlan
from trotline.coordinator.frontier_outage_alert import FrontierWatch
from trotline.errors import AlertNotDelivered
from trotline.model.alert import AlertMessage, Severity
from trotline.rules import alert_texts
from trotline.rules.alert_delivery import TRIES
from trotline.rules.alerts import AlertRules

REFUSED = "cannot reach redis://fleet:hunter2@db.example:6379/0: connection refused"


class Inbox:
    name = "ops"
    place = "a list"
    least = Severity.WARNING

    def __init__(self) -> None:
        self.messages: list[AlertMessage] = []
        self.closed = False

    async def send(self, message: AlertMessage) -> None:
        if self.closed:
            raise AlertNotDelivered("no route")
        self.messages.append(message)


class Play:
    def __init__(self, rules: AlertRules | None = None) -> None:
        self.time = 0.0
        self.inbox = Inbox()
        self.events: list[str] = []
        plan = AlertPlan(rules=rules or AlertRules(), receivers=(self.inbox,), link="https://dash.example")
        self.watch = FrontierWatch("redis://db", "host-1", ["shop", "books"], plan, self, lambda: 1000.0 + self.time)

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def after(self, seconds: float, what: str = "") -> list[str]:
        """The answer to a renewal; the messages so far."""
        self.time += seconds
        if what:
            self.watch.failed(what)
        else:
            self.watch.worked()
        self.watch.step(self.emit)
        await self.watch.deliver(self.emit)
        return [str(message.state) for message in self.inbox.messages]

    def emit(self, event: str, text: str, **data: Any) -> None:
        assert "hunter2" not in text
        self.events.append(event)


async def test_an_outage_is_one_message_when_it_fires_and_one_when_it_is_over() -> None:
    play = Play()
    assert await play.after(5) == []
    assert await play.after(5, REFUSED) == []
    assert play.watch.trouble.startswith("the frontier is unreachable: cannot reach")
    assert await play.after(14, REFUSED) == [], "not for long enough"
    assert await play.after(1, REFUSED) == ["firing"]
    assert await play.after(600, REFUSED) == ["firing"]
    assert await play.after(5) == ["firing", "resolved"]
    assert await play.after(5) == ["firing", "resolved"]
    assert play.watch.trouble == ""

    first, second = play.inbox.messages
    assert second.answers == (first.id,)
    [alert] = second.alerts
    assert (alert.since, alert.fired_at, alert.ended_at) == (1005.0, 1025.0, 1630.0)
    text = alert_texts.body(first)
    assert "frontier unreachable, host-1 (critical)" in text
    assert "Every coordinator sends this for itself" in text
    assert "hunter2" not in text
    assert first.link == "https://dash.example/alerts"
    assert play.events == ["alert.raised", "alert.sent", "alert.over", "alert.sent"]


async def test_a_short_interruption_is_no_alert() -> None:
    play = Play()
    await play.after(5, REFUSED)
    await play.after(10)
    assert await play.after(15, REFUSED) == []


async def test_it_can_be_switched_off() -> None:
    play = Play(AlertRules(off=("frontier",)))
    await play.after(5, REFUSED)
    assert await play.after(100, REFUSED) == []


async def test_a_message_is_tried_again_and_the_end_comes_after_it() -> None:
    play = Play()
    play.inbox.closed = True
    await play.after(30, REFUSED)
    await play.after(1)
    play.inbox.closed = False
    assert await play.after(1) == [], "after a pause"
    assert await play.after(10) == ["firing"]
    assert await play.after(1) == ["firing", "resolved"]


async def test_a_receiver_that_never_answers_is_given_up() -> None:
    play = Play()
    play.inbox.closed = True
    for _ in range(TRIES):
        await play.after(1000, REFUSED)
    assert play.events == ["alert.raised", "alert.undelivered", "alert.dropped"]
