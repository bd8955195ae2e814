"""The peers' table as a picture: bars of CPU time per page, in SVG, which every browser and every README shows."""

from __future__ import annotations

from html import escape
from math import log10
from typing import Any

Figures = dict[str, Any]
WIDTH, BAR, GAP, LABEL = 860, 22, 10, 330
OURS, THEIRS = "#0f766e", "#94a3b8"


def bars(figures: Figures) -> str:
    """Shortest first. The scale is logarithmic: what is compared spans two orders of magnitude."""
    # Of a very small job less than nothing may be left when the start is taken off.
    rows = [pair for pair in figures["rows"].items() if pair[1]["cpu_ms_net"] > 0]
    rows.sort(key=lambda pair: pair[1]["cpu_ms_net"])
    if not rows:
        return ""
    least = min(each["cpu_ms_net"] for _, each in rows) / 2
    most = max(each["cpu_ms_net"] for _, each in rows)
    height = 60 + len(rows) * (BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="CPU milliseconds per page">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="26" font-size="15" font-weight="bold">CPU milliseconds per page, {figures["pages"]:,} '
        f"pages of 30 KB (shorter is better, logarithmic)</text>",
    ]
    for number, (name, each) in enumerate(rows):
        top = 44 + number * (BAR + GAP)
        value = each["cpu_ms_net"]
        length = (WIDTH - LABEL - 90) * log10(value / least) / log10(most / least)
        colour = OURS if name.startswith("trotline") else THEIRS
        lines += [
            f'<text x="{LABEL - 8}" y="{top + 16}" text-anchor="end">{escape(each["title"])}</text>',
            f'<rect x="{LABEL}" y="{top}" width="{length:.0f}" height="{BAR}" rx="3" fill="{colour}"/>',
            f'<text x="{LABEL + length + 6:.0f}" y="{top + 16}">{value:.2f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
