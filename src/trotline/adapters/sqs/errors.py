"""Turns errors of SQS into FrontierErrors with a hint."""

import asyncio

import aiohttp
from botocore import exceptions

from trotline.adapters.sqs.broker_url import Address
from trotline.errors import FrontierError, FrontierUnreachable

LIBRARY = (exceptions.BotoCoreError, exceptions.ClientError, aiohttp.ClientError, OSError, asyncio.TimeoutError)
"""What the client library raises."""

ACTIONS = (
    "sqs:CreateQueue, DeleteQueue, ListQueues, GetQueueUrl, GetQueueAttributes, SendMessage, ReceiveMessage,"
    " DeleteMessage and ChangeMessageVisibility"
)
"""What Trotline needs."""

_GONE = ("QueueDoesNotExist", "NonExistentQueue", "AWS.SimpleQueueService.NonExistentQueue")
_LOGIN = (
    "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidAccessKeyId", "AuthFailure",
    "IncompleteSignature", "MissingAuthenticationToken", "InvalidSecurity", "InvalidSignatureException",
)  # fmt: skip
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
_DENIED = ("AccessDenied", "AccessDeniedException", "AWS.SimpleQueueService.AccessDenied", "UnauthorizedOperation")
_UNREADABLE = (exceptions.ProfileNotFound, exceptions.ConfigParseError, exceptions.CredentialRetrievalError)
_BUSY = (
    "Throttling", "ThrottlingException", "RequestThrottled", "TooManyRequestsException", "ServiceUnavailable",
    "OverLimit", "InternalFailure", "InternalError", "RequestTimeout", "AWS.SimpleQueueService.OverLimit",
)  # fmt: skip


class QueueGone(FrontierUnreachable):
    """The queue does not exist: it is made again by the next call."""


def explained(error: BaseException, address: Address, doing: str) -> FrontierError:
    """`doing`: what was tried, for messages."""
    if isinstance(error, FrontierError):
        return error
    if isinstance(error, exceptions.ClientError):
        return _answered(error, address, doing)
    place = address.place
    if isinstance(error, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
        return FrontierError(
            f"there are no credentials for {place} ({doing})",
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, use a profile or a role, or name them in the URL by"
            " reference: see docs/how-to/sqs.md",
        )
    if isinstance(
        error, exceptions.ProfileNotFound | exceptions.ConfigParseError | exceptions.CredentialRetrievalError
    ):
        return FrontierError(
            f"the credentials for {place} cannot be read: {_first(error)}", hint="See AWS_PROFILE and ~/.aws."
        )
    if isinstance(error, exceptions.SSLError):
        return FrontierUnreachable(
            f"{place}: TLS handshake failed: {_first(error)}",
            hint="Does the endpoint use TLS? If not, write endpoint=http://. Own certificates: AWS_CA_BUNDLE=FILE",
        )
    if isinstance(error, TimeoutError | exceptions.ConnectTimeoutError | exceptions.ReadTimeoutError):
        return FrontierUnreachable(
            f"{place} did not answer in time ({doing})", hint="Is the network up, and the region or endpoint right?"
        )
    return FrontierUnreachable(
        f"cannot reach {place} ({doing}): {_first(error)}",
        hint="Is the network up, and are region and endpoint= of the URL right?",
    )


def code_of(error: exceptions.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "")).rpartition("#")[2]


def is_refused(error: BaseException) -> bool:
    """Are the credentials wrong, or have they expired?"""
    return isinstance(error, exceptions.ClientError) and code_of(error) in (*_LOGIN, *_EXPIRED)


def _answered(error: exceptions.ClientError, address: Address, doing: str) -> FrontierError:
    place, code = address.place, code_of(error)
    said = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())[:200]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _GONE:
        return QueueGone(f"a queue of this job is not at {place} ({doing})", hint="Did another program delete it?")
    if code in _LOGIN:
        return FrontierError(
            f"{place} refused the credentials ({code})",
            hint="Check them: aws sts get-caller-identity. They must be valid for this region and account.",
        )
    if code in _EXPIRED:
        return FrontierError(f"the credentials for {place} have expired ({code})", hint="Log in again: aws sso login")
    if code in _DENIED:
        return FrontierError(f"the credentials have not all permissions at {place} ({doing})", hint=f"Allow {ACTIONS}.")
    if code == "QueueDeletedRecently":
        return FrontierUnreachable(
            f"{place} does not make a queue again within 60 s of its deletion", hint="Wait a minute."
        )
    if code in _BUSY or status >= 500:
        return FrontierUnreachable(f"{place} accepts nothing now ({doing}): {code}", hint="It is tried again.")
    return FrontierError(f"{place} refused a call ({doing}): {code}: {said}", hint="See the message of the server.")


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200] or type(error).__name__
