"""Sizes of Bloom filters, and what they miss."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules import bloom_filter

EXPECTED = st.integers(1, 10**10)
ERRORS = st.sampled_from([1e-6, 3e-5, 0.0001, 0.001, 0.02, 0.1])
KEY = 512 * 2**20
"""The longest string that a server takes."""


@given(EXPECTED, ERRORS)
def test_a_filter_as_full_as_expected_keeps_half_of_its_error(expected: int, error: float) -> None:
    assert bloom_filter.error_now(bloom_filter.plan(expected, error), expected) <= error / 2 * 1.001


@given(EXPECTED, ERRORS, st.floats(0, 1000))
def test_a_filter_that_has_grown_keeps_its_error(expected: int, error: float, times: float) -> None:
    layers = bloom_filter.plan(expected, error)

    assert bloom_filter.error_now(layers, int(expected * times)) <= error * 1.001


@given(EXPECTED, ERRORS)
def test_no_more_than_the_promised_share_is_missed(expected: int, error: float) -> None:
    layers = bloom_filter.plan(expected, error)

    for count in (expected // 2, expected, 5 * expected):
        assert bloom_filter.missed(layers, count) <= error * max(count, 1)


def test_a_url_takes_two_bytes_at_one_in_a_thousand() -> None:
    [layer, *_] = bloom_filter.plan(10_000_000, 0.001)

    assert layer.bytes / 10_000_000 < 2.1


def test_nothing_is_missed_before_there_is_anything() -> None:
    layers = bloom_filter.plan(1000, 0.001)

    assert (bloom_filter.missed(layers, 0), bloom_filter.error_now(layers, 0), bloom_filter.fills(layers, 0)) == (
        0.0,
        0.0,
        [0],
    )


@given(EXPECTED, ERRORS)
def test_no_key_is_too_long_for_a_server(expected: int, error: float) -> None:
    longest = bloom_filter.PER_PARTITION * bloom_filter.BLOCK // 8

    assert longest < KEY
    for layer in bloom_filter.plan(expected, error):
        assert layer.partitions * longest >= layer.bytes > (layer.partitions - 1) * longest


@given(EXPECTED, st.integers(0, 10**12))
def test_layers_are_filled_one_after_another(expected: int, count: int) -> None:
    layers = bloom_filter.plan(expected, 0.001)
    fills = bloom_filter.fills(layers, count)

    assert sum(fills) == min(count, sum(layer.capacity for layer in layers))
    assert all(fill == layer.capacity for fill, layer in zip(fills[:-1], layers, strict=False))


@pytest.mark.parametrize(("count", "blocks", "probes"), [(3000, 50, 10), (6000, 50, 7)])
def test_the_formula_is_what_chance_does(count: int, blocks: int, probes: int) -> None:
    chance = random.Random(11)
    filled = [0] * blocks
    for _ in range(count):
        filled[chance.randrange(blocks)] |= _bits(chance, probes)
    trials = 30_000
    wrong = 0
    for _ in range(trials):
        bits = _bits(chance, probes)
        wrong += filled[chance.randrange(blocks)] & bits == bits
    expected = bloom_filter.false_positives(count, blocks, probes) * trials

    assert expected * 0.5 - 15 < wrong < expected * 1.8 + 15


def _bits(chance: random.Random, probes: int) -> int:
    bits = 0
    for _ in range(probes):
        bits |= 1 << chance.randrange(bloom_filter.BLOCK)
    return bits
