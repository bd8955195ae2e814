"""Messages as text that SQS accepts: at most LARGEST bytes, and no characters that XML does not know.

Our messages are JSON. One that is too large is sent as {"v": 1, "zstd": "base64 of the compressed JSON"}: tasks that
share their headers are small for the books, and many times larger as JSON.
"""

import binascii

import msgspec
import zstandard

from trotline.errors import FrontierError

LARGEST = 256 * 1024
"""Bytes of a message, and of all messages of a call. AWS takes more by now, and other servers do not."""
_PACKED = '{"v":1,"zstd":'
UNPACKED = 16 * 1024 * 1024
"""Bytes that are unpacked at most."""


class _Packed(msgspec.Struct, forbid_unknown_fields=True):
    v: int
    zstd: bytes


def to_text(body: bytes) -> str:
    """Raises FrontierError if it cannot be sent."""
    text = _allowed(body)
    if len(text.encode()) <= LARGEST:
        return text
    packed = msgspec.json.encode(_Packed(1, zstandard.compress(body))).decode()
    if len(packed) > LARGEST:
        raise FrontierError(
            f"a message of {len(body):,} bytes cannot be sent to SQS, which takes {LARGEST:,}",
            hint="Keep large values out of the tasks' meta, headers and body, or use another frontier.",
        )
    return packed


def is_packed(text: str) -> bool:
    """It looks like it."""
    return text.startswith(_PACKED)


def from_text(text: str) -> bytes:
    """What cannot be unpacked is returned as it is: the reader refuses it."""
    body = text.encode(errors="replace")
    if not is_packed(text):
        return body
    try:
        packed = msgspec.json.decode(body, type=_Packed).zstd
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            unpacked = reader.read(UNPACKED + 1)
    except (msgspec.MsgspecError, zstandard.ZstdError, binascii.Error, ValueError):
        return body
    return body if len(unpacked) > UNPACKED else unpacked


def printable(reason: str) -> str:
    """The value of an attribute: not empty, and only what SQS accepts."""
    return "".join(letter if letter.isprintable() else "?" for letter in reason) or "?"


def _allowed(body: bytes) -> str:
    # The only characters of valid JSON that SQS refuses; they can only occur in strings, where they may be escaped.
    return body.decode().replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
