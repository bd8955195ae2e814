"""What SQS answers, as an operator reads it; and when waiting helps."""

import pytest
from botocore import exceptions

from trotline.adapters.sqs.broker_url import Address
from trotline.adapters.sqs.errors import QueueGone, explained
from trotline.errors import FrontierError, FrontierUnreachable

ADDRESS = Address("eu-central-1")


def answered(code: str, status: int = 400) -> exceptions.ClientError:
    said = {"Error": {"Code": code, "Message": "said\nso"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return exceptions.ClientError(said, "SendMessage")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (answered("InvalidClientTokenId", 403), FrontierError, "refused the credentials"),
        (answered("com.amazonaws.sqs#SignatureDoesNotMatch", 403), FrontierError, "refused the credentials"),
        (answered("ExpiredToken", 403), FrontierError, "have expired"),
        (answered("AccessDenied", 403), FrontierError, "not all permissions"),
        (answered("AWS.SimpleQueueService.NonExistentQueue"), QueueGone, "is not at"),
        (answered("RequestThrottled"), FrontierUnreachable, "accepts nothing now"),
        (answered("Whatever", 503), FrontierUnreachable, "accepts nothing now"),
        (answered("QueueDeletedRecently"), FrontierUnreachable, "60 s"),
        (answered("InvalidAddress"), FrontierError, "InvalidAddress: said so"),
        (exceptions.NoCredentialsError(), FrontierError, "no credentials"),
        (exceptions.ProfileNotFound(profile="x"), FrontierError, "cannot be read"),
        (exceptions.EndpointConnectionError(endpoint_url="http://x"), FrontierUnreachable, "cannot reach"),
        (exceptions.ReadTimeoutError(endpoint_url="http://x"), FrontierUnreachable, "in time"),
        (exceptions.SSLError(endpoint_url="http://x", error="bad"), FrontierUnreachable, "TLS"),
        (TimeoutError(), FrontierUnreachable, "in time"),
        (ConnectionResetError("gone"), FrontierUnreachable, "cannot reach"),
    ],
)
def test_an_error_says_what_happened_and_what_to_do(error: Exception, kind: type, text: str) -> None:
    found = explained(error, ADDRESS, "sending messages")
    assert type(found) is kind
    assert text in found.what and "SQS eu-central-1" in found.what and found.hint
