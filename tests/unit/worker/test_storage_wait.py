"""A sink that is frozen refuses nothing: that no answer comes has to be said. `test_worker.py` has it in a worker."""

from trotline.worker.storage_wait import StorageWait


def test_a_sink_that_does_not_answer_is_slow_and_then_unreachable() -> None:
    now = 0.0
    wait = StorageWait("sink", lambda: now)
    with wait.one():
        assert wait.text(True) == ""
        now = 7.0
        assert wait.text(False) == "sink is slow: no answer for more than 5 s"
        now = 33.0
        assert wait.text(False) == "sink is unreachable: no answer for more than 30 s"
    assert wait.text(True) == "sink is slow: a batch took 33 s"
    assert wait.text(False) == "", "nothing waits for it"
    with wait.one():
        assert wait.text(False) == "sink is slow: a batch took 33 s"
        now = 34.0
    assert wait.text(True) == ""
