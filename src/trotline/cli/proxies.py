"""`trotline proxies`: look at proxy pools, check and measure their proxies, compare policies."""

import click

from trotline.cli.options import examples
from trotline.cli.proxies_bench import bench
from trotline.cli.proxies_check import check
from trotline.cli.proxies_list import show
from trotline.cli.proxies_simulate import simulate


@click.group(
    epilog=examples(
        "trotline proxies list                            which are free, banned or down",
        "trotline proxies check --target https://shop.example/",
        "trotline proxies bench https://shop.example/     success, blocks, latency, cost",
        "trotline proxies simulate --preset seed-10x50    what a policy would get",
    )
)
def command() -> None:
    """Look at proxy pools, check and measure their proxies, and compare policies for them.

    Proxies are shown as host:port and as ids; users and passwords never.
    """


for each in (show, check, bench, simulate):
    command.add_command(each)
