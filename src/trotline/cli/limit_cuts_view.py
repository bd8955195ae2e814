"""What limits and traps left out, in lines for a screen."""

from collections.abc import Sequence

from trotline.cli.formatting import count, safe, safe_url
from trotline.rules.limit_cuts import Cut

_EXAMPLE = 200
"""Characters of an example."""


def cut_lines(cuts: Sequence[Cut]) -> list[str]:
    """A line each: what, how many, an example, and the setting to change."""
    return [line(cut) for cut in cuts]


def line(cut: Cut) -> str:
    example = f", e.g. {safe_url(cut.example, _EXAMPLE)}" if cut.example else ""
    return f"{safe(cut.what, 120)}: {count(cut.count)}{example} ({cut.advice})"
