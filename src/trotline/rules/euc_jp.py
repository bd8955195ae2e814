"""EUC-JP as browsers decode it.

Python's codec has only the national standard. Pages also use NEC's and IBM's characters (①, ㈱, Ⅲ), whose position in
the Windows code page 932 can be computed.
"""

import codecs

_HANDLER = "trotline.euc-jp"
_AS_BROWSERS_WRITE = (
    ("\u301c", "\uff5e"),
    ("\u2016", "\u2225"),
    ("\u2212", "\uff0d"),
    ("\u00a2", "\uffe0"),
    ("\u00a3", "\uffe1"),
    ("\u00ac", "\uffe2"),
)
"""Six signs that the two tables map to different characters."""

_MOST = 20_000
"""Looking up one by one is slow: bytes that are mostly wrong are not Japanese."""


def decode(body: bytes) -> str:
    """The text; wrong bytes become U+FFFD."""
    text = body.decode("euc_jp", "replace")
    if "\ufffd" in text and text.count("\ufffd") <= _MOST:
        text = body.decode("euc_jp", _HANDLER)
    for ours, theirs in _AS_BROWSERS_WRITE:
        text = text.replace(ours, theirs)
    return text


def _from_932(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - for the type checker: this handler only decodes
    pair = error.object[error.start : error.start + 2]
    if len(pair) == 2 and 0xA1 <= pair[0] <= 0xFE and 0xA1 <= pair[1] <= 0xFE:
        try:
            return _shifted(pair[0] - 0x80, pair[1] - 0x80).decode("cp932"), error.start + 2
        except UnicodeDecodeError:
            return "\ufffd", error.start + 2
    return "\ufffd", error.end


def _shifted(row: int, cell: int) -> bytes:
    """The same place of the national table in Shift_JIS."""
    lead = ((row - 1) >> 1) + (0x71 if row < 0x5F else 0xB1)
    trail = cell + (0x7E if row % 2 == 0 else 0x1F if cell < 0x60 else 0x20)
    return bytes((lead, trail))


codecs.register_error(_HANDLER, _from_932)
