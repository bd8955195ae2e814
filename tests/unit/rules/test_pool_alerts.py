"""Alerts for proxy pools: no free proxy for too long, half of a pool down."""

from trotline.rules.alerts import DownShare, PoolSample, pool_alerts
from trotline.rules.pool_troubles import PoolTrouble, Trouble


def trouble(host: str = "shop.example") -> PoolTrouble:
    return PoolTrouble(pool="isp", lane=f"{host} via isp", host=host, trouble=Trouble.RESTING, members=12)


def samples(*hosts: str, minutes: int, start: int = 0) -> list[PoolSample]:
    """A sample every 30 s."""
    found = tuple(map(trouble, hosts))
    return [PoolSample(now=60.0 * start + 30.0 * n, troubles=found) for n in range(2 * minutes + 1)]


def test_a_lane_without_a_free_proxy_for_five_minutes_is_an_alert() -> None:
    assert pool_alerts(samples("shop.example", minutes=4)) == {}
    assert pool_alerts(samples("shop.example", minutes=7)) == {
        "no proxy free": "pool isp has had no free proxy for shop.example for 7 min (resting)"
    }


def test_other_hosts_are_counted_and_the_longest_is_named() -> None:
    history = [*samples("a.example", minutes=5), *samples("b.example", "a.example", minutes=6, start=5)]
    assert pool_alerts(history)["no proxy free"].endswith("for a.example for 11 min (resting), and 1 more")


def test_a_lane_that_was_served_in_between_starts_anew() -> None:
    history = [*samples("shop.example", minutes=9), PoolSample(now=571.0)]
    assert pool_alerts(history) == {}
    assert pool_alerts([*history, *samples("shop.example", minutes=3, start=10)]) == {}


def test_more_than_half_of_a_pool_down_is_an_alert() -> None:
    def state(down: int) -> dict[str, str]:
        return pool_alerts([PoolSample(now=0.0, down={"isp": DownShare(down, 12)})])

    assert state(6) == {}
    assert state(7) == {"proxies down": "7 of 12 proxies of pool isp are down"}
    assert pool_alerts([]) == {}
