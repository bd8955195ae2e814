"""Messages about alerts: grouped, repeated, held back while they flap, claimed, tried again, dropped."""

from typing import Any

import msgspec

from trotline.model.alert import AlertBook, AlertMessage, AlertState, PendingMessage, Severity
from trotline.model.job import Job
from trotline.rules import alert_delivery, alert_texts
from trotline.rules.alert_delivery import CLAIM, MOST_PENDING, TRIES
from trotline.rules.alert_states import step
from trotline.rules.alerts import AlertRules, Finding

RULES = AlertRules()
JOB = Job(id="shop-3", spider="shop", started_at=1_700_000_000.5)
OPS = {"ops": Severity.WARNING}
BAD = Finding(rule="sink", severity=Severity.CRITICAL, text="it is away", next="trotline doctor")


class Play:
    def __init__(self, receivers: dict[str, Severity] | None = None) -> None:
        self.receivers = OPS if receivers is None else receivers
        self.book = AlertBook()
        self.now = 1_700_000_100.0

    def after(self, seconds: float, *found: Finding, flush: bool = False) -> "Play":
        self.now += seconds
        self.book = step(self.book, found, RULES, self.now, final=False)
        self.book = alert_delivery.post(self.book, self.receivers, RULES, self.now, flush=flush)
        return self

    def take(self, receiver: str = "ops") -> AlertMessage | None:
        """Deliver the next message."""
        self.book, pending = alert_delivery.claim(self.book, [receiver], self.now)
        if pending is None:
            return None
        message = alert_delivery.message(self.book, pending, JOB, "https://dash.example/jobs/shop-3")
        self.book = alert_delivery.delivered(self.book, pending)
        return message

    def states(self, receiver: str = "ops") -> list[str]:
        message = self.take(receiver)
        return [] if message is None else [f"{alert.rule} {alert.state}" for alert in message.alerts]


def test_changes_of_half_a_minute_go_out_in_one_message() -> None:
    play = Play()
    mild, other = Finding(rule="errors", text="too many"), Finding(rule="worker", object="w-1")
    assert play.after(0, mild).states() == []
    assert play.after(25, mild, other).states() == []
    assert play.after(5, mild, other).states() == ["errors firing", "worker firing"]
    assert play.after(600, mild, other).states() == []


def test_a_critical_alert_is_sent_at_once_with_what_waits() -> None:
    play = Play()
    mild = Finding(rule="errors", text="too many")
    assert play.after(0, mild).states() == []
    assert play.after(5, mild, BAD).states() == ["errors firing", "sink firing"]


def test_the_end_is_reported_too_as_an_answer() -> None:
    play = Play()
    play.after(0, BAD).after(30, BAD)
    first = play.take()
    play.after(60).after(30)
    second = play.take()

    assert first is not None
    assert second is not None
    assert (first.state, second.state) == (AlertState.FIRING, AlertState.RESOLVED)
    assert (first.id, second.id) == ("shop-3.1700000000.1", "shop-3.1700000000.2")
    assert (first.answers, second.answers) == ((), (first.id,))
    assert second.alerts[0].ended_at == 1_700_000_190.0


def test_what_fired_and_ended_between_two_messages_is_one_message() -> None:
    play = Play()
    mild = Finding(rule="errors", text="too many")
    assert play.after(0, mild).after(10).states() == []
    play.after(30)
    message = play.take()
    assert message is not None
    [alert] = message.alerts
    assert (message.state, message.answers) == (AlertState.RESOLVED, ())
    assert (alert.fired_at, alert.ended_at) == (1_700_000_100.0, 1_700_000_110.0)
    assert alert.text == "it fired and ended before a message was sent; too many"
    assert play.after(30).after(600).states() == [], "once"
    assert play.after(5, mild).after(10).after(40).states() == ["errors resolved"], "the next one is news again"


def test_what_came_and_went_is_not_sent_to_those_who_get_only_critical_alerts() -> None:
    play = Play({"phone": Severity.CRITICAL})
    play.after(0, Finding(rule="errors")).after(10).after(60)
    assert play.take("phone") is None


def test_an_alert_that_goes_on_is_repeated_after_four_hours() -> None:
    play = Play()
    play.after(0, BAD).after(30, BAD)
    assert play.states() == ["sink firing"]
    assert play.after(4 * 3600 - 60, BAD).states() == []
    play.after(70, BAD)
    assert play.after(60, BAD).states() == ["sink firing"]
    assert play.after(60, BAD).states() == []


def test_an_alert_that_gets_worse_is_reported_again() -> None:
    play = Play()
    mild = msgspec.structs.replace(BAD, severity=Severity.WARNING)
    play.after(0, mild).after(30, mild)
    assert play.states() == ["sink firing"]
    assert play.after(5, BAD).after(30, BAD).states() == ["sink firing"]
    assert play.after(5, mild).after(30, mild).states() == [], "that it gets better is no news"


def test_a_receiver_gets_what_is_severe_enough_for_it() -> None:
    play = Play({"ops": Severity.WARNING, "phone": Severity.CRITICAL})
    mild = Finding(rule="worker", object="w-1")
    play.after(0, mild).after(30, mild)
    assert (play.states("ops"), play.states("phone")) == (["worker firing"], [])
    play.after(5, mild, BAD).after(30, mild, BAD)
    assert (play.states("ops"), play.states("phone")) == (["sink firing"], ["sink firing"])
    play.after(5).after(400)
    play.after(40)
    assert play.states("phone") == ["sink resolved"]


def test_a_process_without_receivers_takes_the_news_from_nobody() -> None:
    play = Play({})
    play.after(0, BAD).after(30, BAD).after(600, BAD)
    assert play.book.outbox == ()
    play.receivers = OPS
    assert play.after(5, BAD).states() == ["sink firing"]


def test_at_the_end_of_a_command_nothing_waits_for_company() -> None:
    assert Play().after(0, BAD, flush=True).states() == ["sink firing"]


def test_flapping_is_reported_once_and_then_held_for_an_hour() -> None:
    play = Play()
    sent = []
    for _ in range(12):
        sent += play.after(30, BAD).after(60, BAD).states()
        sent += play.after(30).after(60).states()
    assert sent == ["sink firing", "sink resolved"] * 3 + ["sink firing"]
    assert play.after(3600).states() == ["sink resolved"], "what it came to is reported when the hold ends"


def test_a_flapping_alert_says_so() -> None:
    play = Play()
    for _ in range(3):
        play.after(30, BAD).after(60, BAD).states()
        play.after(30).after(60).states()
    play.after(30, BAD).after(60, BAD)
    message = play.take()
    assert message is not None
    assert "it comes and goes: its changes are not reported until 2023-11-14 23:24:30 UTC" in alert_texts.body(message)


def pending_of(play: Play) -> PendingMessage:
    [pending] = play.book.outbox
    return pending


def test_a_message_that_is_claimed_is_not_given_to_another_process_for_a_minute() -> None:
    play = Play()
    play.after(0, BAD, flush=True)
    play.book, mine = alert_delivery.claim(play.book, ["ops"], play.now)
    assert mine is not None
    for later, given in ((0.0, False), (CLAIM - 1, False), (CLAIM, True)):
        _, other = alert_delivery.claim(play.book, ["ops"], play.now + later)
        assert (other is not None) is given
    assert not alert_delivery.due(play.book, ["ops"], play.now)
    assert alert_delivery.waits(play.book, ["ops"])


def test_a_message_is_tried_five_times_with_growing_pauses() -> None:
    play = Play()
    play.after(0, BAD, flush=True)
    pauses = []
    for number in range(TRIES):
        play.book, pending = alert_delivery.claim(play.book, ["ops"], play.now)
        assert pending is not None
        play.book, last = alert_delivery.failed(play.book, pending, "it answered 500", None, play.now)
        assert last is (number == TRIES - 1)
        if not last:
            pauses.append(pending_of(play).not_before - play.now)
            play.now += pauses[-1]
    assert pauses == [10.0, 30.0, 90.0, 270.0]
    assert play.book.outbox == ()


def test_a_receiver_that_asks_for_time_gets_it_within_limits() -> None:
    for asked, given in ((120.0, 120.0), (1e9, 900.0), (0.0, 10.0)):
        play = Play()
        play.after(0, BAD, flush=True)
        book, _ = alert_delivery.failed(play.book, pending_of(play), "429", asked, play.now)
        assert book.outbox[0].not_before == play.now + given


def test_a_message_that_nobody_delivers_is_dropped_after_an_hour() -> None:
    play = Play()
    play.after(0, BAD, flush=True)
    assert alert_delivery.expired(play.book, play.now + 3599) == (play.book, [])
    book, dropped = alert_delivery.expired(play.book, play.now + 3601)
    assert (book.outbox, [pending.receiver for pending in dropped]) == ((), ["ops"])


def test_of_too_many_messages_the_oldest_are_dropped() -> None:
    many = tuple(
        PendingMessage(number=number, receiver="ops", made_at=10.0, alerts={}) for number in range(1, MOST_PENDING + 4)
    )
    book, dropped = alert_delivery.expired(AlertBook(outbox=many), 20.0)
    assert [pending.number for pending in dropped] == [1, 2, 3]
    assert len(book.outbox) == MOST_PENDING


def test_what_is_left_out_is_counted_in_the_message() -> None:
    play = Play()
    found = [Finding(rule="worker", object=f"w-{number}") for number in range(50)]
    play.after(0, *found, flush=True)
    message = play.take()
    assert message is not None
    assert (len(message.alerts), message.more) == (20, 30)
    assert alert_texts.subject(message) == "shop-3: worker lost (warning), and 49 more"
    assert "and 30 more" in alert_texts.body(message)


def test_a_message_says_cause_since_figure_link_and_next_command() -> None:
    play = Play()
    play.after(0, BAD, flush=True)
    message = play.take()
    assert message is not None
    assert alert_texts.subject(message) == "shop-3: sink unreachable (critical)"
    expected: Any = """\
sink unreachable (critical)
  it is away
  since 2023-11-14 22:15:00 UTC
  next: trotline doctor

job shop-3 of spider shop
https://dash.example/jobs/shop-3
"""
    assert alert_texts.body(message) == expected
    assert "for 12 min, since 2023-11-14 22:15:00 UTC" in alert_texts.details(message.alerts[0], message.at + 720)
