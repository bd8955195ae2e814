"""One host that answers a byte per second among many healthy ones: what does it cost them?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.contenders import WORK
from bench.hostile import Site
from bench.poison import Manner, complaints, crawl

Figures = dict[str, Any]
HEALTHY = "127.0.0."
"""The tar pit has another beginning."""


def tarpit(hosts: int, good: int, manner: Manner, work: Path = WORK) -> Figures:
    """The same crawl without and with the tar pit, whose pages nobody waits for: the run ends when it is given up."""
    calm = crawl(Site(hosts, good), manner, "no-pit", work)
    pit = crawl(Site(hosts, good, pit=good // hosts), manner, "pit", work)
    calm_rate, pit_rate = calm.rate(HEALTHY), pit.rate(HEALTHY)
    missing = hosts + good - len([url for url in pit.stored if HEALTHY in url])
    return {
        "hosts": hosts,
        "good": good,
        "pace": manner.pace,
        "calm_rate": calm_rate,
        "pit_rate": pit_rate,
        "share": pit_rate / calm_rate if calm_rate else 0.0,
        "failed": [
            *complaints("no pit", calm, hosts + good, 0, exit_code=0),
            *([f"pit: {missing} healthy pages are missing"] if missing else []),
        ],
    }
