"""Text of pages, URLs and errors, with every character visible: for terminals and for the dashboard.

Characters that move the cursor, turn the writing direction or show nothing would let two texts look the same. Joiners
(U+200C, U+200D) are part of the spelling of some scripts and of emoji: there they are kept, anywhere else they are
written as an escape.
"""

import unicodedata

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_JOINING = (
    "ARABIC", "SYRIAC", "MONGOLIAN", "NKO", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU",
    "KANNADA", "MALAYALAM", "SINHALA", "KHMER", "MYANMAR", "TIBETAN",
)  # fmt: skip
"""Scripts whose letters change their form by joiners, as the names of their characters begin."""
_EMOJI_SIGNS = "\ufe0f"
"""The sign that asks for the picture of a character."""


def visible(text: str) -> str:
    """In one line. Hidden characters become symbols, or the replacement sign."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(text, place) for place in range(len(text)))


def cut(text: str, longest: int) -> str:
    """The same, with `longest` characters at most."""
    shown = visible(text[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _shown(text: str, place: int) -> str:
    char = text[place]
    if picture := _PICTURES.get(ord(char)):
        return picture
    if char in (_NON_JOINER, _JOINER):
        return char if _joins(text, place) else f"\\u{ord(char):04x}"
    return "\ufffd" if unicodedata.category(char) in _HIDDEN else char


def _joins(text: str, place: int) -> bool:
    """Does it stand between two letters of such a script, or (U+200D) between two emoji?"""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if not before or not after:
        return False
    if text[place] == _JOINER and _is_emoji(before) and _is_emoji(after):
        return True
    script = _script(before)
    return bool(script) and script == _script(after)


def _is_emoji(char: str) -> bool:
    return char in _EMOJI_SIGNS or unicodedata.category(char) == "So" or "\U0001f3fb" <= char <= "\U0001f3ff"


def _script(char: str) -> str:
    if unicodedata.category(char)[0] not in "LM":
        return ""
    name = unicodedata.name(char, "")
    return next((script for script in _JOINING if name.startswith(script)), "")
