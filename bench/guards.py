"""What the guards cost: Trotline beside itself without guard, limits, robots, traps, marker and redaction."""

from __future__ import annotations

import os
from dataclasses import replace
from statistics import median
from typing import Any

from bench.contenders import HERE, TROTLINE
from bench.report import table
from bench.scenarios import interleaved, row
from bench.trial import attempt

Figures = dict[str, Any]
GOAL = 1.08
UNGUARDED = replace(
    TROTLINE,
    name="trotline-unguarded",
    title="Trotline, guards off",
    environment={"PYTHONPATH": os.pathsep.join([str(HERE / "unguarded"), os.environ.get("PYTHONPATH", "")])},
)


def guards(pages: int, rounds: int) -> Figures:
    """The same crawl with and without, taking turns; each round is a comparison of its own."""
    both = [TROTLINE, UNGUARDED]
    starts = interleaved(both, 3, lambda each: attempt(each, 1))
    crawls = interleaved(both, rounds, lambda each: attempt(each, pages))
    if not all([*starts.values(), *crawls.values()]):
        return {}
    rows = {each.name: row(each, starts[each.name], crawls[each.name]) for each in both}
    on, off = (rows[each.name]["cpu_ms_net_rounds"] for each in both)
    ratios = [one / other for one, other in zip(on, off, strict=True)]
    return {"pages": pages, "rounds": rounds, "rows": rows, "ratios": ratios, "ratio": median(ratios)}


def told(figures: Figures) -> str:
    on, off = figures["rows"].values()
    each = sorted(figures["ratios"])
    cells = [
        f"{figures['pages']:,}",
        f"{on['cpu_ms_net']:.2f}",
        f"{off['cpu_ms_net']:.2f}",
        f"{figures['ratio']:.2f}",
        f"{each[0]:.2f} to {each[-1]:.2f}",
        f"<= {GOAL}",
    ]
    header = ["pages", "CPU ms/page, guards on", "off", "on / off, median of the rounds", "rounds", "goal"]
    return table(header, [cells])
