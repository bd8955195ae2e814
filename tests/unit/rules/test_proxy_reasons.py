from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.proxy_reasons import grouped

REFUSED = "snooze: unreachable: proxy 10.0.0.{}:8080: unreachable: connection refused"


def test_many_proxies_that_fail_alike_are_one_line() -> None:
    counts = {REFUSED.format(number): 100 - number for number in range(1, 13)}
    assert grouped({"ok": 5, **counts}) == {
        "ok": 5,
        "snooze: unreachable: unreachable: connection refused, through 12 proxies: "
        "10.0.0.1:8080, 10.0.0.2:8080, 10.0.0.3:8080 and 9 more": sum(counts.values()),
    }


def test_other_reasons_of_the_same_proxies_stay_apart() -> None:
    counts = {
        "retry: unreachable: proxy a.test:80 did not reach shop.test within 60 s": 3,
        "retry: unreachable: proxy [::1]:80 did not reach shop.test within 60 s": 4,
        "retry: unreachable: proxy a.test:80 could not reach shop.test: 503": 1,
        "retry: unreachable: proxy [::1]:80: closed the connection": 1,
    }
    assert grouped(counts) == {
        "retry: unreachable: proxy did not reach shop.test within 60 s, through 2 proxies: [::1]:80, a.test:80": 7,
        "retry: unreachable: proxy a.test:80 could not reach shop.test: 503": 1,
        "retry: unreachable: proxy [::1]:80: closed the connection": 1,
    }


def test_a_counter_of_a_pool_is_none_of_a_proxy() -> None:
    counts = {"proxy good: isp": 3, "proxy fault: isp": 1, "proxy ": 1, "proxy": 1, "proxy : x": 2}
    assert grouped(counts) == counts


@given(st.dictionaries(st.lists(st.sampled_from(["proxy", "a:1", "b:2:", "x", ""])).map(" ".join), st.integers(1, 9)))
def test_no_number_is_lost_and_what_is_alone_stays_as_it_is(counts: dict[str, int]) -> None:
    found = grouped(counts)
    assert sum(found.values()) == sum(counts.values())
    assert all(grouped({name: count}) == {name: count} for name, count in counts.items())
