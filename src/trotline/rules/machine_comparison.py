"""Up or out: what other machines would make of this job, in pages per second, time and money."""

from math import inf

import msgspec

from trotline.rules.advice import Advice
from trotline.rules.advice_limits import ARCHIVE_WAIT, CPU, FRONTIER, FRONTIER_WAIT, HOSTS, NETWORK, SINK_WAIT, SLOTS
from trotline.rules.fleet_rates import MEMORY_SHARE, FleetFlow, HostsUse

NUMBERS = (1, 2, 3, 5)
"""Machines of one kind that are compared."""
GB = 1e9
_OF_MACHINES = frozenset({SLOTS, CPU, ARCHIVE_WAIT, SINK_WAIT, FRONTIER_WAIT, HOSTS, NETWORK})
"""Limits that other machines change."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    cores: float
    memory: float
    """GB."""
    network: float = 0.0
    """Mbit/s; 0: unknown."""
    per_hour: float
    spot_per_hour: float = 0.0


class ProxyPrice(msgspec.Struct, frozen=True, kw_only=True):
    per_gb: float = 0.0
    per_month: float = 0.0


class Service(msgspec.Struct, frozen=True, kw_only=True):
    per_hour: float


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """An editable table: docs/how-to/scale-out.md."""

    currency: str
    as_of: str
    machine: dict[str, Machine]
    proxy: dict[str, ProxyPrice] = {}
    service: dict[str, Service] = {}


class Option(msgspec.Struct, frozen=True, kw_only=True):
    machine: str
    number: int
    workers: int
    """In all, as many as processors and memory hold."""
    pages_per_second: float
    limit: str
    """What binds then."""
    hours: float | None
    """Until the tasks that are known now are done. None: nothing is done."""
    cost: float | None
    spot_cost: float | None = None
    """With machines that may be taken away."""
    needs_servers: bool = False
    """More than one machine, and the frontier or the sink is a file."""


def options(
    prices: Prices,
    advice: Advice,
    measured: FleetFlow,
    hosts: HostsUse,
    remaining: int,
    *,
    files: bool,
    proxied: bool = False,
) -> list[Option]:
    """The fastest first, of equally fast ones the cheapest. `files`: frontier or sink is a file of one machine.
    `proxied`: pages go through proxies, and their bytes cost."""
    found = [
        option
        for name, machine in prices.machine.items()
        for number in NUMBERS
        if (option := _option(prices, name, machine, number, advice, measured, hosts, remaining, files, proxied))
    ]
    return sorted(
        found, key=lambda each: (-round(each.pages_per_second, 2), each.cost if each.cost is not None else inf)
    )


def _option(
    prices: Prices,
    name: str,
    machine: Machine,
    number: int,
    advice: Advice,
    measured: FleetFlow,
    hosts: HostsUse,
    remaining: int,
    files: bool,
    proxied: bool,
) -> Option | None:
    workers = number * workers_of(machine, measured, hosts)
    rate = measured.pages_per_second
    capacity = advice.capacity_per_second
    if not workers or not rate or capacity is None:
        return None
    bounds = {each.name: each.per_second for each in advice.limits if each.name not in _OF_MACHINES}
    known = {bound: allowed for bound, allowed in bounds.items() if allowed is not None}
    if number > 1 and files:
        # A file is left behind with its machine: the server that replaces it has not been measured.
        known.pop(FRONTIER, None)
    if advice.limit not in _OF_MACHINES and advice.admissible_per_second is not None:
        known[advice.limit] = advice.admissible_per_second
    known[CPU] = capacity / measured.workers * workers
    if machine.network and measured.bytes_per_second:
        known[NETWORK] = number * machine.network * 125_000 / (measured.bytes_per_second / rate)
    limit = min(known, key=known.__getitem__)
    reached = known[limit]
    hours = remaining / reached / 3600 if reached > 0 else None
    size = remaining * measured.bytes_per_second / rate / GB
    return Option(
        machine=name,
        number=number,
        workers=workers,
        pages_per_second=reached,
        limit=limit,
        hours=hours,
        cost=_cost(prices, machine.per_hour, number, hours, size if proxied else 0.0),
        spot_cost=_cost(prices, machine.spot_per_hour, number, hours, size if proxied else 0.0)
        if machine.spot_per_hour
        else None,
        needs_servers=files and number > 1,
    )


def workers_of(machine: Machine, measured: FleetFlow, hosts: HostsUse) -> int:
    """Worker processes that one machine holds, at full load."""
    full = max(0.02, min(1.0, measured.cpu) / max(measured.occupied, min(1.0, measured.cpu), 0.01))
    by_cpu = int(machine.cores / full + 1e-9)
    each = hosts.memory / measured.workers if hosts.memory and measured.workers else 0.0
    by_memory = int(MEMORY_SHARE * machine.memory * GB / each) if each else by_cpu
    return max(0, min(by_cpu, by_memory))


def _cost(prices: Prices, per_hour: float, number: int, hours: float | None, proxy_gb: float) -> float | None:
    if hours is None:
        return None
    services = sum(service.per_hour for service in prices.service.values())
    by_bytes = [price.per_gb for price in prices.proxy.values() if price.per_gb]
    monthly = sum(price.per_month for price in prices.proxy.values()) / 730
    return hours * (number * per_hour + services + monthly) + proxy_gb * max(by_bytes, default=0.0)
