from trotline.adapters.redis.flat_pairs import scored


def test_scores_are_read_in_both_protocol_versions() -> None:
    expected = [(b"a", 715_000_000_000_001), (b"b", 7)]

    assert scored([b"a", b"715000000000001", b"b", b"7"]) == expected
    assert scored([[b"a", 715_000_000_000_001.0], [b"b", 7.0]]) == expected
    assert scored([]) == []
