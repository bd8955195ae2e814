"""From findings to alerts: pending, firing, resolved, flapping; and the limits of the book."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.alert import Alert, AlertBook, AlertState, PendingMessage, Severity, Told
from trotline.model.note import LARGEST_NOTE
from trotline.rules import alert_states
from trotline.rules.alert_delivery import MOST_PENDING
from trotline.rules.alert_states import MOST_ALERTS, MOST_OBJECTS, step
from trotline.rules.alerts import AlertRules, Finding, Level

RULES = AlertRules()


def test_that_the_rules_were_evaluated_is_written_now_and_then() -> None:
    first = alert_states.checked(AlertBook(), 100.0)
    assert first.checked_at == 100.0
    assert alert_states.checked(first, 110.0) is first
    assert alert_states.checked(first, 115.0).checked_at == 115.0
    assert alert_states.checked(first, 50.0).checked_at == 50.0, "the clock of a restored frontier"


def finding(rule: str = "sink", **more: Any) -> Finding:
    return Finding(rule=rule, **{"text": "it is bad", "next": "trotline doctor", **more})


class Play:
    """A book, and the time that passes."""

    def __init__(self, rules: AlertRules = RULES) -> None:
        self.rules = rules
        self.book = AlertBook()
        self.now = 1_000_000.0

    def after(self, seconds: float, *found: Finding, final: bool = False) -> list[tuple[str, str]]:
        self.now += seconds
        self.book = step(self.book, found, self.rules, self.now, final=final)
        return [(alert.rule, str(alert.state)) for alert in self.book.alerts]

    @property
    def alert(self) -> Alert:
        [alert] = self.book.alerts
        return alert


def test_a_finding_is_pending_until_it_lasts_and_is_resolved_when_it_is_gone() -> None:
    play = Play()
    lasting = finding(lasting=60.0)
    assert play.after(0, lasting) == [("sink", "pending")]
    assert play.after(59, lasting) == [("sink", "pending")]
    assert play.after(1, lasting) == [("sink", "firing")]
    assert (play.alert.since, play.alert.fired_at) == (1_000_000.0, 1_000_060.0)
    assert play.after(100) == [("sink", "resolved")]
    assert play.alert.ended_at == 1_000_160.0
    assert play.after(3601) == []


def test_a_pending_finding_that_goes_leaves_no_trace() -> None:
    play = Play()
    play.after(0, finding(lasting=60.0))
    assert play.after(30) == []
    assert play.after(40, finding(lasting=60.0)) == [("sink", "pending")]


def test_what_only_holds_begins_nothing_and_ends_nothing() -> None:
    play = Play()
    holds = finding(level=Level.HOLDS)
    assert play.after(0, holds) == []
    play.after(5, finding())
    assert play.after(500, holds) == [("sink", "firing")]
    assert play.after(5) == [("sink", "resolved")]


def test_a_mark_that_changes_begins_the_time_anew() -> None:
    play = Play()
    play.after(0, finding(lasting=300.0, mark="77"))
    play.after(200, finding(lasting=300.0, mark="78"))
    assert play.after(200, finding(lasting=300.0, mark="78")) == [("sink", "pending")]
    assert play.after(100, finding(lasting=300.0, mark="78")) == [("sink", "firing")]


def test_what_is_unknown_changes_nothing() -> None:
    play = Play()
    unknown = finding("proxies", level=Level.UNKNOWN)
    play.after(0, finding("proxies", object="a", lasting=60.0), finding("proxies", object="b"))
    before = play.book
    play.after(900, unknown)
    assert play.book == before


def test_an_alert_with_a_time_to_clear_is_over_after_it() -> None:
    play = Play()
    lost = finding("worker", object="w-1", clear_after=300.0)
    play.after(0, lost)
    play.after(5)
    play.after(290)
    assert play.alert.state is AlertState.FIRING
    play.after(5, lost)
    play.after(299)
    play.after(5)
    assert play.alert.state is AlertState.FIRING, "it was found again meanwhile"
    play.after(300)
    assert play.alert.state is AlertState.RESOLVED


def test_what_is_over_for_certain_does_not_wait_for_its_time_to_clear() -> None:
    play = Play()
    lost = finding("worker", object="w-1", clear_after=300.0)
    play.after(0, lost)
    play.after(5, finding("worker", object="w-1", level=Level.OVER), finding("worker", object="w-2", level=Level.OVER))
    assert play.alert.state is AlertState.RESOLVED
    play.after(5, lost)
    assert play.alert.state is AlertState.FIRING


def test_at_the_end_of_a_job_what_is_not_found_is_over_and_nothing_stays_pending() -> None:
    play = Play()
    play.after(0, finding("worker", object="w"), finding("deadline", lasting=600.0))
    end = play.after(5, finding("empty"), finding("coverage", lasting=10.0), final=True)
    assert end == [("worker", "resolved"), ("empty", "firing")]


def test_a_figure_is_renewed_once_a_minute_and_a_severity_at_once() -> None:
    play = Play()
    play.after(0, finding(text="1 page"))
    before = play.book
    play.after(5, finding(text="2 pages"))
    assert play.book is before
    play.after(60, finding(text="3 pages"))
    assert play.alert.text == "3 pages"
    play.after(1, finding(text="4 pages", severity=Severity.CRITICAL))
    assert (play.alert.text, play.alert.severity) == ("4 pages", Severity.CRITICAL)


def test_a_figure_is_renewed_while_an_alert_is_pending() -> None:
    play = Play()
    play.after(0, finding(text="1 page", lasting=600.0))
    play.after(60, finding(text="2 pages", lasting=600.0))
    assert (play.alert.state, play.alert.text) == (AlertState.PENDING, "2 pages")


def test_an_incident_that_is_over_keeps_its_cause_beside_a_later_one_that_does_not_last() -> None:
    play = Play()
    play.after(0, finding(text="the disk is full"))
    play.after(10)
    play.after(10, finding(text="the disk is read-only", lasting=60.0))
    assert (play.alert.state, play.alert.text) == (AlertState.PENDING, "the disk is read-only")
    play.after(10)
    assert (play.alert.state, play.alert.text) == (AlertState.RESOLVED, "the disk is full")
    play.after(10, finding(text="the disk is read-only", lasting=60.0))
    play.after(60, finding(text="the disk is read-only", lasting=60.0))
    play.after(10)
    assert (play.alert.state, play.alert.text) == (AlertState.RESOLVED, "the disk is read-only")


def test_a_figure_is_renewed_while_nothing_can_be_said_and_the_alert_stays() -> None:
    """As when a site blocks all proxies, and no attempt is made any more."""
    play = Play()
    play.after(0, finding(text="40 of 80 attempts"))
    play.after(5, finding(text="no attempt", level=Level.UNKNOWN))
    assert play.alert.text == "40 of 80 attempts"
    play.after(60, finding(text="no attempt", level=Level.UNKNOWN))
    assert (play.alert.state, play.alert.text) == (AlertState.FIRING, "no attempt")
    play.after(60, finding(text="", level=Level.UNKNOWN))
    assert play.alert.text == "no attempt"


def test_an_alert_that_comes_and_goes_is_held() -> None:
    play = Play()
    for _ in range(3):
        play.after(60, finding())
        play.after(60)
    assert play.alert.held_until == 0.0
    play.after(60, finding())
    assert play.alert.held_until == play.now + 3600.0
    until = play.alert.held_until
    play.after(60)
    play.after(60, finding())
    assert play.alert.held_until == until, "the hold is not prolonged by what it holds back"


def test_four_fires_in_more_than_an_hour_are_no_flapping() -> None:
    play = Play()
    for _ in range(8):
        play.after(900, finding())
        play.after(600)
        assert play.alert.held_until == 0.0


def test_of_many_objects_twenty_are_alerts_and_the_others_are_counted() -> None:
    play = Play()
    play.after(0, *(finding("worker", object=f"w-{number}") for number in range(500)))
    assert len(play.book.alerts) == MOST_OBJECTS
    assert play.book.more == {"worker": 480}
    play.after(5, *(finding("worker", object=f"w-{number}") for number in reversed(range(500))))
    assert {alert.object for alert in play.book.alerts} == {f"w-{number}" for number in range(20)}, "no change of names"


def test_alerts_that_are_over_make_room_for_new_ones() -> None:
    play = Play()
    for round_ in range(10):
        play.after(5, *(finding("coverage", object=f"{round_}.{number}") for number in range(20)))
        play.after(5)
    assert play.after(5, finding("sink"))[-1] == ("sink", "firing")
    assert len(play.book.alerts) <= MOST_ALERTS


@pytest.mark.parametrize("text", ["\x1b[31mred", "two\r\nBcc: x@y", "\u202eright to left", "nul\0"])
def test_texts_are_one_line_without_characters_that_move_the_cursor(text: str) -> None:
    play = Play()
    play.after(0, finding("worker", object=text, text=text))
    assert play.alert.text.isprintable()
    assert play.alert.object.isprintable()


def test_secrets_in_urls_are_redacted() -> None:
    play = Play()
    play.after(0, finding(text="sink is unreachable: postgresql://user:hunter2@db/x"))
    assert "hunter2" not in play.alert.text


def test_the_largest_book_fits_into_a_note() -> None:
    long = "\U0001f600" * 400
    told = {f"receiver-{place:015}": Told(AlertState.FIRING, Severity.CRITICAL, 2e9, 10**9) for place in range(5)}
    play = Play()
    for rule in ("proxies", "accounts", "coverage", "worker"):
        found = [
            finding(rule, object=f"{number}{long}", text=long, next=long, severity=Severity.CRITICAL)
            for number in range(30)
        ]
        play.after(1.5, *found)
    alerts = tuple(
        msgspec.structs.replace(
            alert,
            told=told,
            text_before=alert.text,
            fires=(2e9,) * 10,
            held_until=2e9,
            clear_since=2e9,
            ended_at=2e9,
            mark="9" * 12,
        )
        for alert in play.book.alerts
    )
    assert len(alerts) == MOST_ALERTS
    numbers = {alert.number: AlertState.RESOLVED for alert in alerts}
    outbox = tuple(
        PendingMessage(
            number=10**9,
            receiver="r" * 24,
            made_at=2e9,
            alerts=numbers,
            answers=tuple(range(10**9, 10**9 + 10)),
            tries=4,
            error="e" * 200,
        )
        for _ in range(MOST_PENDING)
    )
    book = msgspec.structs.replace(play.book, alerts=alerts, outbox=outbox)
    data = alert_states.encode(book)
    assert len(data) <= LARGEST_NOTE
    assert alert_states.decode(data) == book


@given(st.binary(max_size=300))
def test_a_damaged_note_is_an_empty_book(data: bytes) -> None:
    assert isinstance(alert_states.decode(data), AlertBook)
