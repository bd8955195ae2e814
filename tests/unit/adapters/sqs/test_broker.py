"""What the broker does with answers that the server in the contract tests does not give."""

from typing import Any

import pytest

from trotline.adapters.sqs.broker import SqsBroker
from trotline.adapters.sqs.broker_url import Address
from trotline.adapters.sqs.queues import job_prefix
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job, LaneRules
from trotline.ports.broker import Message

JOB = Job(id="shop-1", spider="shop", started_at=1.0, rules=LaneRules())
MESSAGES = [Message("s0.b2", b'{"v":1,"parcels":[]}', "00ff") for _ in range(3)]


def broker(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> tuple[SqsBroker, list[list[dict[str, Any]]]]:
    """One whose batches are answered like this; and the batches."""
    made, sent, left = SqsBroker(Address("eu-west-1"), JOB), list[list[dict[str, Any]]](), list(answers)

    async def call(doing: str, verb: str, **words: Any) -> dict[str, Any]:
        if verb == "send_message_batch":
            sent.append(words["Entries"])
            return left.pop(0)
        return {"QueueUrl": f"https://sqs/{words.get('QueueName')}", "Attributes": {"QueueArn": "arn"}}

    monkeypatch.setattr(made.api, "call", call)
    return made, sent


def failed(number: int, code: str, *, fault: bool) -> dict[str, Any]:
    return {"Id": str(number), "Code": code, "Message": "said\nso", "SenderFault": fault}


async def test_a_server_without_fair_queues_gets_messages_without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"Failed": [failed(n, "InvalidParameterValue", fault=True) for n in (0, 2)]}
    made, sent = broker(monkeypatch, refused, {}, {})
    await made.publish(MESSAGES)
    await made.publish(MESSAGES[:1])
    assert [["MessageGroupId" in entry for entry in batch] for batch in sent] == [[True] * 3, [False] * 2, [False]]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failed(1, "InternalError", fault=False), FrontierUnreachable),
        (failed(1, "KmsAccessDenied", fault=True), FrontierError),
    ],
)
async def test_a_batch_that_was_taken_in_part_is_not_published(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], kind: type[FrontierError]
) -> None:
    made, _ = broker(monkeypatch, {"Failed": [answer]})
    with pytest.raises(kind, match="did not take 1 of the messages") as refused:
        await made.publish(MESSAGES)
    assert type(refused.value) is kind


async def test_a_call_has_at_most_ten_messages_and_256_kib(monkeypatch: pytest.MonkeyPatch) -> None:
    made, sent = broker(monkeypatch, {}, {}, {}, {})
    await made.publish(MESSAGES * 4)
    assert [len(batch) for batch in sent] == [10, 2]
    sent.clear()
    await made.publish([Message("s0.b2", b'"' + b"x" * 200_000 + b'"')] * 2)
    assert [len(batch) for batch in sent] == [1, 1]


def test_names_of_queues_are_unique_and_short_enough() -> None:
    long = Job(id="ü" * 200 + "-17", spider="x", started_at=1.0, rules=LaneRules())
    other = Job(id=long.id, spider="x", started_at=2.0, rules=LaneRules())
    prefix = job_prefix("p" * 20, long)
    assert prefix != job_prefix("p" * 20, other)
    assert len(prefix + "s999-o31b4") <= 80
    assert prefix.replace("-", "").replace("_", "").isascii()


async def test_a_message_that_the_dead_queue_does_not_take_is_delivered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SqsBroker(Address("eu-west-1"), JOB)
    verbs: list[str] = []

    async def call(doing: str, verb: str, **words: Any) -> dict[str, Any]:
        verbs.append(verb)
        message = {"Body": "x" * 256 * 1024, "ReceiptHandle": "1"}
        attributes = {"MaximumMessageSize": "1024", "QueueArn": "arn"}
        return {"QueueUrl": "https://sqs/q", "Attributes": attributes, "Messages": [message]}

    monkeypatch.setattr(made.api, "call", call)
    [delivery] = await made.receive("s0.b2", 1)
    assert made._held._held
    await made.reject(delivery, "is no parcel")
    assert not made._held._held, "SQS delivers it again when its time is over"
    assert "send_message" not in verbs and "delete_message_batch" not in verbs
    await made._held.give_back()
