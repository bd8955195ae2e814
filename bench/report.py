"""The figures as text: tables that can be pasted into README.md, and the goals they are held against."""

from __future__ import annotations

from typing import Any

Figures = dict[str, Any]
GOALS = {"snippet": 40.0, "scrapy-redis": 35.0, "scrapy": 20.0, "crawlee": 12.0, "celery": 8.0, "scrapy-tuned": 4.0}
"""How many times the CPU of Trotline each peer must at least need: those with a Redis that of the fleet's worker."""
FLEETS = ("snippet", "scrapy-redis", "celery")


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def peers(figures: Figures) -> str:
    rows = figures["rows"]
    header = [
        "contender",
        "CPU ms/page",
        "with start-up",
        "pages/s",
        "peak RSS MB",
        "first page s",
        "Redis CPU ms/page",
        "PostgreSQL",
        "CPU, times Trotline",
        "goal",
    ]
    body = [
        [
            each["title"],
            f"{each['cpu_ms_net']:.2f}",
            f"{each['cpu_ms_whole']:.2f}",
            f"{each['pages_per_second']:,.0f}",
            f"{each['peak_mb']:.0f}",
            f"{each['first_page_s']:.2f}",
            f"{each['redis_cpu_ms']:.3f}" if each.get("redis_cpu_ms") else "",
            f"{each['postgres_cpu_ms']:.3f}" if each.get("postgres_cpu_ms") else "",
            times(rows, name),
            f">= {GOALS[name]:.0f}" if name in GOALS else "",
        ]
        for name, each in rows.items()
    ]
    return f"{figures['pages']:,} {figures['kind']} pages, median of {figures['rounds']} round(s)\n\n" + table(
        header, body
    )


def times(rows: Figures, name: str) -> str:
    """How many times our CPU: against the fleet's worker for whoever has a Redis, else against the local one."""
    ours = rows.get("trotline-fleet" if name in FLEETS or name.startswith("trotline-fleet") else "trotline")
    return f"{rows[name]['cpu_ms_net'] / ours['cpu_ms_net']:.1f}" if ours else ""


def latency(figures: Figures) -> str:
    body = [
        [each["title"], f"{each['pages_per_second']:.0f}", f"{each['share']:.0%}", f"{each['middle_share']:.0%}"]
        for each in figures["rows"].values()
    ]
    header = [
        f"100 ms latency, 64 slots, {figures['pages']:,} pages",
        "pages/s",
        f"of {figures['ideal']:.0f}",
        "middle 80 %",
    ]
    return table(header, body)


def children(figures: Figures) -> str:
    return table(
        ["one child, pages/s", "two children", "speed-up", "cores used by the two", "by nginx", "goal"],
        [
            [
                f"{figures['one']:,.0f}",
                f"{figures['two']:,.0f}",
                f"{figures['speed_up']:.2f}",
                f"{figures['cores_of_two']:.2f}",
                f"{figures['cores_of_server']:.2f}",
                ">= 1.7 where the cores are free",
            ]
        ],
    )


def memory(figures: Figures) -> str:
    marks = list(figures["processes"][0]["mb_at"])
    header = ["process", *(f"MB at {int(mark):,}" for mark in marks), "peak"]
    body = [
        [
            "largest" if number == 0 else f"no. {number + 1}",
            *("" if each["mb_at"][mark] is None else f"{each['mb_at'][mark]:.0f}" for mark in marks),
            f"{each['peak_mb']:.0f}",
        ]
        for number, each in enumerate(figures["processes"])
    ]
    return table(header, body)


def start_up(figures: Figures) -> str:
    return table(
        ["`trotline --help`, CPU ms", "first page after, s", "slowest", "goals"],
        [
            [
                f"{figures['help_cpu_ms']:.0f}",
                f"{figures['first_page_s']:.2f}",
                f"{figures['first_page_worst_s']:.2f}",
                "<= 150 ms, <= 1 s",
            ]
        ],
    )


def hosts(figures: Figures) -> str:
    header = ["hosts at 1/s each", "pages", "pages/s", "share of what the limits admit", "CPU ms/page", "cores", "goal"]
    body = [
        f"{figures['hosts']:,}",
        f"{figures['pages']:,}",
        f"{figures['rate']:,.0f}",
        f"{figures['share']:.1%}",
        f"{figures['cpu_ms']:.2f}",
        f"{figures['cores']:.2f}",
        ">= 95 %",
    ]
    return "\n".join([table(header, [body]), *figures["failed"]])


def poison(figures: Figures) -> str:
    header = ["good", "poison", "good pages/s, calm", "with poison", "share", "most kills", "CPU s", "goals"]
    body = [
        f"{figures['good']:,}",
        f"{figures['bad']:,}",
        f"{figures['calm_rate']:.1f}",
        f"{figures['hurt_rate']:.1f}",
        f"{figures['share']:.0%}",
        str(figures["most_kills"]),
        f"{figures['calm_cpu_s']:.0f} / {figures['cpu_s']:.0f}",
        "share >= 80 %, kills <= 2, all good stored",
    ]
    return "\n".join([table(header, [body]), *figures["failed"]])


def tarpit(figures: Figures) -> str:
    header = ["healthy hosts", "pages", "pages/s, no pit", "with the pit", "share", "goal"]
    body = [
        str(figures["hosts"]),
        f"{figures['good']:,}",
        f"{figures['calm_rate']:.1f}",
        f"{figures['pit_rate']:.1f}",
        f"{figures['share']:.1%}",
        ">= 95 %",
    ]
    return "\n".join([table(header, [body]), *figures["failed"]])
