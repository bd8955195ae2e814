"""The duplicate filter of a job: options of the frontier's URL, and parameters of the scripts.

redis://HOST/0?seen=bloom&expected=10000000&error=0.001
redis://HOST/0?seen_scope=site&forget=7d
"""

from collections.abc import Sequence
from typing import Any, get_args, get_type_hints
from urllib.parse import parse_qsl, urlsplit

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.lua_layouts import read_books
from trotline.adapters.redis.server_calls import Server
from trotline.errors import SettingsError
from trotline.model.duplicate_filter import Memory
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.rules import bloom_filter

OPTIONS = ("seen", "expected", "error", "seen_scope", "forget")
SLICES = 7
"""Slices per window: an entry expires after 7 to 8 sevenths of the window."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LARGEST = 10**12
_STEP = 500
_KINDS = ("exact", "bloom")


def memory_of(url: str) -> Memory:
    """The options of the URL; raises SettingsError."""
    asked = {name: value for name, value in parse_qsl(urlsplit(url).query) if name in OPTIONS}
    memory = Memory(
        kind=_choice("seen", asked, get_args(get_type_hints(Memory)["kind"])),
        scope=_choice("seen_scope", asked, get_args(get_type_hints(Memory)["scope"])),
        expected=_count(asked.get("expected")),
        error=_share(asked.get("error")),
        forget=_length(asked.get("forget")),
    )
    for name, needs in (("expected", "bloom"), ("error", "bloom")):
        if name in asked and memory.kind != needs:
            raise SettingsError(f"{name}= applies to seen=bloom only", hint="Add seen=bloom, or leave it out.")
    if "forget" in asked and memory.scope != "site":
        raise SettingsError("forget= applies to seen_scope=site only", hint="Add seen_scope=site for forget=.")
    return memory


def _choice(name: str, asked: dict[str, str], choices: tuple[str, ...]) -> Any:
    value = asked.get(name, choices[0])
    if value not in choices:
        raise SettingsError(f"{name}={value[:40]} is not known", hint=f"It may be {' or '.join(choices)}.")
    return value


def _count(text: str | None) -> int:
    if text is None:
        return Memory().expected
    digits = text.replace("_", "")
    if not digits.isdecimal() or not 0 < int(digits) <= _LARGEST:
        raise SettingsError(f"expected={text[:40]} is not a number of URLs", hint="Write it as expected=10000000.")
    return int(digits)


def _share(text: str | None) -> float:
    if text is None:
        return Memory().error
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 1e-6 <= share <= 0.1:
        raise SettingsError(
            f"error={text[:40]} is not an error rate that a Bloom filter can keep",
            hint="Write 0.001 for one in a thousand.",
        )
    return share


def _length(text: str | None) -> Seconds:
    if text is None:
        return Memory().forget
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdecimal() or not int(number):
        raise SettingsError(f"forget={text[:40]} is not a duration", hint="Write it as forget=7d, 12h or 30m.")
    return int(number) * _UNITS[unit]


def plan(memory: Memory, shards: int = 1) -> tuple[bloom_filter.Layer, ...]:
    """The filter of one shard of one job."""
    error = memory.error if memory.scope == "job" else memory.error / 2
    return bloom_filter.plan(memory.expected // shards, error)


def slice_plan(memory: Memory, shards: int = 1) -> tuple[bloom_filter.Layer, ...]:
    """The filter of one slice. Most slices are small, so it starts small and grows fast; all slices together, one more
    than the window has, share half of the error."""
    return bloom_filter.plan(memory.expected // shards // 16, memory.error / 2 / (SLICES + 1), growth=4, layers=8)


def pieces(memory: Memory) -> tuple[str, ...]:
    """The Lua helpers of this filter."""
    if memory.kind == "bloom":
        own: tuple[str, ...] = ("fingerprints_bloom", "seen_bloom")
        return own if memory.scope == "job" else (*own, "seen_site")
    return ("seen_exact",) if memory.scope == "job" else ("seen_exact", "fingerprints_exact", "seen_site")


def fields(job: Job, shard: int) -> list[Any]:
    """Fields of a new job's shard for the filter, flat."""
    memory, shards = job.memory, job.shards
    flat: list[Any] = []
    if memory.kind == "bloom":
        flat += ["plan", msgspec.msgpack.encode(plan(memory, shards))]
    if memory.scope == "site":
        flat += ["site", keys.site(job.spider, shard)]
        flat += ["span", repr(memory.forget / SLICES), "window", repr(memory.forget)]
        if memory.kind == "bloom":
            flat += ["slices", msgspec.msgpack.encode(slice_plan(memory, shards))]
    return flat


async def forget(server: Server, prefix: str) -> None:
    """Delete the Bloom filter of a job, if it has one."""
    packed = await server.ask("HGET", keys.job(prefix), "plan")
    if packed is not None:
        await _remove(server, f"{prefix}s:", msgspec.msgpack.decode(packed, type=list[bloom_filter.Layer]))


async def forget_site(server: Server, spider: str, shard: int) -> None:
    """Delete the shared filter of a spider, after its last job was deleted."""
    for kind in _KINDS:
        site = f"{keys.site(spider, shard)}seen:{kind}:"
        for number in await server.ask("HKEYS", f"{site}slices"):
            if number != b"last":
                kept = msgspec.msgpack.decode(await server.ask("HGET", f"{site}slices", number))
                if kept.get("plan"):
                    layers = msgspec.convert(kept["plan"], list[bloom_filter.Layer])
                    await _remove(server, f"{site}{number.decode()}:", layers)
                else:
                    await _unlink(server, [f"{site}{number.decode()}:{bucket}" for bucket in range(kept["buckets"])])
        await server.ask("UNLINK", f"{site}slices")


async def _remove(server: Server, prefix: str, layers: list[bloom_filter.Layer]) -> None:
    """Layer by layer, until one does not exist."""
    for number, layer in enumerate(layers, 1):
        names = [f"{prefix}{number}:{partition}" for partition in range(layer.partitions)]
        if not await _unlink(server, names):
            return


async def _unlink(server: Server, names: list[str]) -> int:
    removed = 0
    for start in range(0, len(names), _STEP):
        removed += int(await server.ask("UNLINK", *names[start : start + _STEP]))
    return removed


class Shared(msgspec.Struct, frozen=True):
    """The effect of other jobs' URLs on a shared Bloom filter."""

    error: float = 0.0
    """Probability that a new link is taken for a duplicate."""
    missed: float = 0.0
    """Links that the newest slice took for duplicates while it was filled, and its size:"""
    count: int = 0

    def lost(self, memory: Memory, count: int, shards: int) -> float:
        """Expected number of lost links, of `count` links of this job."""
        if memory.scope == "job":
            return 0.0
        if not self.count:
            return bloom_filter.missed(slice_plan(memory, shards), count // shards) * shards
        return self.error * count + self.missed * shards * min(1.0, count / shards / self.count)


async def describe(server: Server, job: Job, prefixes: Sequence[str]) -> str:
    """A description of the filter for operators; empty for the default."""
    if (job.memory.kind, job.memory.scope) == ("exact", "job"):
        return ""
    counts = [read_books(await server.ask("HGET", keys.job(prefix), "books")).seen for prefix in prefixes]
    shared = Shared()
    if job.memory.kind == "bloom" and job.memory.scope == "site":
        # From one shard: lanes are distributed evenly.
        shared = await _shared(server, f"{keys.site(job.spider, 0)}seen:bloom:slices")
    return described(job, int(sum(counts)), shared, len(prefixes))


async def _shared(server: Server, slices: str) -> Shared:
    numbers = sorted(int(name) for name in await server.ask("HKEYS", slices) if name != b"last")
    kept = [await server.ask("HGET", slices, number) for number in numbers]
    found = [msgspec.msgpack.decode(packed) for packed in kept if packed is not None]
    filters = [(msgspec.convert(each["plan"], list[bloom_filter.Layer]), int(each["seen"])) for each in found]
    if not filters:
        return Shared()
    error = sum(bloom_filter.error_now(layers, count) for layers, count in filters[:-1])
    return Shared(error, bloom_filter.missed(*filters[-1]), filters[-1][1])


def described(job: Job, count: int, shared: Shared, shards: int = 1) -> str:
    """`count`: number of URLs in the filter."""
    memory = job.memory
    parts = []
    if memory.kind == "bloom":
        parts.append(_bloom(memory, count, shared, shards))
    if memory.scope == "site":
        parts.append(f"shared by the jobs of {job.spider}, forgotten after {_duration(memory.forget)}")
    return "; ".join(parts)


def _bloom(memory: Memory, count: int, shared: Shared, shards: int) -> str:
    asked = count or memory.expected
    lost = bloom_filter.missed(plan(memory, shards), asked // shards) * shards + shared.lost(memory, asked, shards)
    if not count:
        return f"Bloom filter for {memory.expected:,} URLs, of which about {lost:,.0f} will be taken for known"
    about = f"about {lost:,.0f} new URLs" if lost >= 1.5 else "about one new URL" if lost >= 0.5 else "no new URL"
    return f"Bloom filter, {count:,} of {memory.expected:,} expected, {about} taken for known so far"


def _duration(seconds: Seconds) -> str:
    for unit, name in (("d", "day"), ("h", "hour"), ("m", "minute")):
        if seconds % _UNITS[unit] == 0:
            number = round(seconds / _UNITS[unit])
            return f"{number} {name}" + ("" if number == 1 else "s")
    return f"{seconds:.0f} s"
