"""Reads the price table of `trotline advise --prices FILE`."""

import math
from pathlib import Path

import msgspec

from trotline.errors import SettingsError
from trotline.rules import bounded_toml
from trotline.rules.machine_comparison import Prices

LARGEST = 1 << 17
"""Bytes of the file."""
MOST_MACHINES = 50


def read_prices(path: Path) -> Prices:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror or error}", hint="Give the path of a price table: --prices FILE"
        ) from error
    if len(text) > LARGEST:
        raise SettingsError(f"{path} is larger than {LARGEST:,} bytes", hint="It cannot be a price table.")
    try:
        prices = msgspec.convert(bounded_toml.parse(text.decode()), Prices)
    except ValueError as error:
        raise SettingsError(
            f"{path} is not a price table: {error}", hint="docs/how-to/scale-out.md has one to start from."
        ) from error
    if trouble := _trouble(prices):
        raise SettingsError(f"{path}: {trouble}", hint="docs/how-to/scale-out.md has one to start from.")
    return prices


def _trouble(prices: Prices) -> str:
    if not prices.machine or len(prices.machine) > MOST_MACHINES:
        return f"1 to {MOST_MACHINES} tables [machine.NAME] are needed, and there are {len(prices.machine)}"
    for name, machine in prices.machine.items():
        if not all(0 < value < math.inf for value in (machine.cores, machine.memory)):
            return f"[machine.{name}]: cores and memory must be above 0"
        if not all(0 <= value < math.inf for value in (machine.network, machine.per_hour, machine.spot_per_hour)):
            return f"[machine.{name}]: network and prices must not be below 0"
    costs = [value for price in prices.proxy.values() for value in (price.per_gb, price.per_month)]
    if not all(0 <= value < math.inf for value in (*costs, *(each.per_hour for each in prices.service.values()))):
        return "the prices of proxies and services must not be below 0"
    return ""
