"""Frames of the server, without what is not used of them.

A publisher chooses the properties, headers and routing key of its message. The client library decodes them all,
and ends the connection over a value that it cannot decode; the server then delivers the same message over the next one.
So the library gets only what we use: the size of the body, the header `reason` and the id. Nothing here is recursive.
"""

METHOD, CONTENT_HEADER = 1, 2
"""Types of frames."""

_GET_OK = b"\x00\x3c\x00\x47"
"""Its class and number; then 8 bytes of delivery tag, a byte of bits, exchange, routing key, 4 bytes of count."""
_HEADERS, _MESSAGE_ID = 0x2000, 0x0080
_SHORT, _LONG = -1, -4
"""A value with its length before it, in one or four bytes."""
_PROPERTIES = (
    (0x8000, _SHORT),  # content type
    (0x4000, _SHORT),  # content encoding
    (_HEADERS, _LONG),
    (0x1000, 1),  # delivery mode
    (0x0800, 1),  # priority
    (0x0400, _SHORT),  # correlation id
    (0x0200, _SHORT),  # reply to
    (0x0100, _SHORT),  # expiration
    (_MESSAGE_ID, _SHORT),
)
"""In the order of the frame, with their flags; the others come after these."""
_FIELDS = {
    **dict.fromkeys(b"tbB", 1), **dict.fromkeys(b"su", 2), **dict.fromkeys(b"Iif", 4), **dict.fromkeys(b"lLdT", 8),
    **dict.fromkeys(b"V\x00", 0), **dict.fromkeys(b"SAFx", _LONG), ord("D"): 5,
}  # fmt: skip
"""Type of a header -> its length."""


def used(kind: int, payload: bytes) -> bytes:
    """The payload of a frame as the library gets it."""
    if kind == CONTENT_HEADER:
        return _content_header(payload)
    if kind == METHOD and payload.startswith(_GET_OK):
        # Without exchange and routing key.
        return payload[:13] + b"\x00\x00" + payload[-4:]
    return payload


def _content_header(payload: bytes) -> bytes:
    reason, message_id = _reason_and_id(payload[12:])
    field = b"\x06reasonS" + len(reason).to_bytes(4) + reason
    flags = (_HEADERS if reason else 0) | (_MESSAGE_ID if message_id else 0)
    parts = [
        # Class, weight and size of the body.
        payload[:12],
        flags.to_bytes(2),
        len(field).to_bytes(4) + field if reason else b"",
        bytes([len(message_id)]) + message_id if message_id else b"",
    ]
    return b"".join(parts)


def _reason_and_id(data: bytes) -> tuple[bytes, bytes]:
    """Both empty where they are missing, or no text."""
    flags, at = int.from_bytes(data[:2]), 2
    found = {_HEADERS: b"", _MESSAGE_ID: b""}
    for flag, length in _PROPERTIES:
        if flags & flag:
            start, at = _span(data, at, length)
            if flag in found:
                found[flag] = data[start:at]
    return _text(_reason(found[_HEADERS])), _text(found[_MESSAGE_ID])


def _reason(table: bytes) -> bytes:
    at = 0
    while at < len(table):
        start, end = _span(table, at, _SHORT)
        kind = table[end] if end < len(table) else -1
        if kind not in _FIELDS:
            return b""
        value, at = _span(table, end + 1, _FIELDS[kind])
        if table[start:end] == b"reason":
            return table[value:at] if kind == ord("S") else b""
    return b""


def _span(data: bytes, at: int, length: int) -> tuple[int, int]:
    """Where a value begins and ends: perhaps after the end of the data, which is never before its begin."""
    if length >= 0:
        return at, at + length
    start = at - length
    return start, start + int.from_bytes(data[at:start])


def _text(value: bytes) -> bytes:
    try:
        value.decode()
    except UnicodeDecodeError:
        return b""
    return value
