"""Two results side by side: what a peer cost beside Trotline then and now.

Machines differ and are noisy, so a time of then says nothing about a time of now. The ratio to a peer that ran in the
same rounds does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.report import FLEETS, table

Figures = dict[str, Any]
NOISE = 0.1
"""Smaller changes are noise even on a quiet machine."""


def compare(before: Path, now: Figures) -> str:
    """The peers' table of a saved result against that of this run."""
    then = json.loads(before.read_text()).get("peers", {}).get("rows", {})
    rows = []
    for name, each in now.get("rows", {}).items():
        if name.startswith("trotline") or name not in then:
            continue
        old, new = ratio(then, name), ratio(now["rows"], name)
        if old is None or new is None:
            continue
        change = new / old - 1
        word = "as before" if abs(change) < NOISE else "better" if change > 0 else "WORSE"
        rows.append([each["title"], f"{old:.1f}", f"{new:.1f}", f"{change:+.0%}", word])
    if not rows:
        return f"nothing to compare: {before} has no peer of this run"
    return table(["CPU per page, times Trotline's", "then", "now", "change", ""], rows)


def ratio(rows: Figures, name: str) -> float | None:
    ours = rows.get("trotline-fleet" if name in FLEETS else "trotline")
    return rows[name]["cpu_ms_net"] / ours["cpu_ms_net"] if ours else None
