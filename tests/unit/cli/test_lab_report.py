"""What the report of a laboratory concludes."""

from pathlib import Path
from typing import Any

import pytest

from trotline.cli.lab import _make
from trotline.cli.lab_report import best, predicted_table, sentences
from trotline.commands.advise import AdviceReport
from trotline.commands.lab import LabResult, Trial
from trotline.errors import SettingsError
from trotline.rules.advice import Advice
from trotline.rules.eta import Unknown
from trotline.rules.lab_plan import Phase


def trial(processes: int, slots: int, rate: float, interval: float = 0.05, **more: Any) -> Trial:
    advice = Advice(sentence="one more worker gives +0 %: pace", limit="pace", gain=0.0)
    report = AdviceReport(
        job="lab-1", advice=advice, measured=None, signals=[], moves=[], remaining=0, ends=Unknown.TOO_EARLY
    )
    intervals = {"shop.example": interval}
    return Trial(
        phase=Phase(processes, slots), pages_per_second=rate, memory=1, report=report, intervals=intervals, **more
    )


def result(*trials: Trial) -> LabResult:
    return LabResult(spider="shop", cores=2.0, trials=list(trials), samples=[], changes=[], missed=[], ended="")


def test_the_smallest_configuration_that_is_as_fast_as_any_is_chosen() -> None:
    found = best([trial(1, 8, 10.0), trial(1, 16, 19.5), trial(2, 16, 20.0)])
    assert found is not None
    assert found.phase == Phase(1, 16)


def test_slots_get_no_credit_for_a_pace_that_changed() -> None:
    slow, fast = trial(1, 8, 10.0, interval=0.1), trial(1, 32, 20.0, interval=0.05)
    text = " ".join(sentences(result(slow, fast)))
    assert "The pace of shop.example was not the same in all measurements" in text
    assert "20/s in the chosen one, 10/s in 1 x 8 slots" in text
    assert "what their slots give is unknown" in text
    assert "pace of" not in " ".join(sentences(result(trial(1, 8, 10.0), trial(1, 32, 20.0))))


def test_a_prediction_is_not_compared_over_a_change_of_the_pace() -> None:
    assert predicted_table(result(trial(1, 16, 10.0), trial(2, 16, 20.0)))[1]
    assert not predicted_table(result(trial(1, 16, 10.0, interval=0.1), trial(2, 16, 20.0)))[1]


def test_the_folder_of_the_report_is_made(tmp_path: Path) -> None:
    _make(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be made"):
        _make(tmp_path / "file" / "c")
