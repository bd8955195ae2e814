"""TOML that others wrote, bounded before it is parsed.

Python's parser takes quadratic time over the parts of one dotted key: 20,000 of them, 40 kB, took 20 s. No table that
we read is nested so deeply.
"""

import re
from typing import Any

MOST_PARTS = 16
"""Of one key or table name: `[pools.home]` has two; tables of other programs in a pyproject.toml have up to eight."""

_ASIDE = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}"
    r'|"(?!"")(?:[^"\\\n]|\\.)*+"'
    r"|'(?!'')[^'\n]*+'"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<open>[\"'].*)",
    re.DOTALL,
)
"""What may contain dots and is not a key: strings and comments. What follows a quote that stays open is not parsed."""
_LONG_KEY = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_PARTS}}}")


def parse(text: str) -> dict[str, Any]:
    """ValueError says what is wrong: not TOML, nested too deeply, or a number with thousands of digits."""
    import tomllib  # most runs read no file

    # A string stays a word: keys may be quoted, too.
    if _LONG_KEY.search(_ASIDE.sub(_word, text)):
        raise ValueError(f"a key has more than {MOST_PARTS} parts (a.b.c has three)")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _word(found: re.Match[str]) -> str:
    return "" if found["comment"] or found["open"] else "_"
