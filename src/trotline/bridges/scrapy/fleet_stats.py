"""The stats of all processes of a job, added up in a note of the frontier."""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any

import msgspec

from trotline.errors import FrontierError
from trotline.ports.console import Console

log = logging.getLogger("trotline.scrapy")

NOTE = "scrapy stats"
PROCESSES = "processes"
_TRIES = 50
_decode = msgspec.json.Decoder(dict[str, int | float]).decode


def merged(fleet: Mapping[str, float], own: Mapping[str, Any]) -> dict[str, float]:
    """Counts are added up; of maxima and times the largest is kept, of minima the smallest."""
    found = dict(fleet)
    for name, value in own.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or name.startswith("fleet/"):
            continue
        before = found.get(name)
        if before is None:
            found[name] = value
        elif "max" in name or "elapsed" in name or name.startswith("memusage/"):
            found[name] = max(before, value)
        elif "min" in name.split("/")[-1].split("_"):
            found[name] = min(before, value)
        else:
            found[name] = before + value
    return found


async def add(console: Console, own: Mapping[str, Any]) -> dict[str, float]:
    """Add the stats of a process that ends. The sum of all that have ended, this one included."""
    try:
        for _ in range(_TRIES):
            (note,) = await console.read_notes([NOTE])
            fleet = merged(_decode(note.data) if note is not None else {}, {**own, PROCESSES: 1})
            if await console.write_note(NOTE, msgspec.json.encode(fleet), note.version if note is not None else 0):
                return fleet
            await asyncio.sleep(random.uniform(0.0, 0.1))  # noqa: S311 - not a secret
    except (FrontierError, msgspec.MsgspecError) as error:
        log.warning("scrapy.stats the stats of this process are not added to those of the fleet: %s", error)
    return {}
