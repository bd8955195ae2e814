"""The benchmark's hostile scenarios, small: what they promise about pages holds at any size; speed is for the bench."""

from pathlib import Path

from bench.poison import Manner, poison
from bench.tarpit import tarpit


def test_good_pages_are_stored_and_poison_is_buried_after_two_kills(tmp_path: Path):
    # On a busy machine even 256 MiB take a while.
    quick = Manner(pace="20/s", processes=2, slots=8, parse=3)
    figures = poison(hosts=10, good=60, bad=3, manner=quick, work=tmp_path)

    assert figures["failed"] == []
    assert figures["most_kills"] == 2
    assert figures["reasons"] == [
        "killed: reading its page crashed the worker (SIGSEGV)",
        "killed: reading its page took longer than 3 s",
        "killed: reading its page used more than 256 MiB",
    ]


def test_a_tar_pit_keeps_no_healthy_page_from_being_stored(tmp_path: Path):
    quick = Manner(pace="20/s", processes=1, slots=16, total=1.0)
    figures = tarpit(hosts=5, good=50, manner=quick, work=tmp_path)

    assert figures["failed"] == []
