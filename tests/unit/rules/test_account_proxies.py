"""An account keeps its proxy: every worker chooses the same one, and other proxies do not change it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.account_proxies import chosen

IDS = st.integers(1, 2**48 - 1)
PROXIES = st.lists(IDS, min_size=1, max_size=30, unique=True)


@given(IDS, PROXIES, st.randoms())
def test_the_order_of_the_list_does_not_matter(account, proxies, random):
    other = list(proxies)
    random.shuffle(other)
    for moves in range(len(proxies)):
        assert chosen(account, proxies, moves) == chosen(account, other, moves)


@given(IDS, PROXIES)
def test_moves_go_through_all_proxies_and_begin_again(account, proxies):
    seen = [chosen(account, proxies, moves) for moves in range(len(proxies))]
    assert sorted(seen) == sorted(proxies)
    assert chosen(account, proxies, len(proxies)) == seen[0]


@given(IDS, PROXIES.filter(lambda some: len(some) > 1), st.data())
def test_a_removed_proxy_moves_only_its_own_accounts(account, proxies, data):
    removed = data.draw(st.sampled_from(proxies))
    before = chosen(account, proxies)
    rest = [each for each in proxies if each != removed]
    assert chosen(account, rest) == (before if before != removed else chosen(account, proxies, 1))


@given(IDS, PROXIES, IDS)
def test_an_added_proxy_takes_an_account_or_leaves_it(account, proxies, added):
    assert chosen(account, [*proxies, added]) in (chosen(account, proxies), added)


def test_accounts_are_spread_evenly():
    proxies = list(range(1, 21))
    counts = Counter(chosen(account, proxies) for account in range(1, 4001))
    # 200 each; a standard deviation is 14.
    assert set(counts) == set(proxies)
    assert 140 <= min(counts.values()) <= max(counts.values()) <= 260


def test_accounts_of_a_failed_proxy_are_spread_over_the_others():
    proxies = list(range(1, 21))
    failed = [account for account in range(1, 4001) if chosen(account, proxies) == 7]
    assert len({chosen(account, proxies, 1) for account in failed}) == 19
