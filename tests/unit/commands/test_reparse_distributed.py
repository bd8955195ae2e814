"""Units of an archive as tasks of a queue."""

from trotline.commands.reparse_distributed import _task
from trotline.model.archive import ArchiveQuery
from trotline.rules.task_checks import LONGEST_NAME, key, name


def test_a_unit_in_deep_folders_is_a_task():
    unit = "/".join(["open", *["ä" * 120] * 8, "0.warc.gz"])
    task = _task(unit, "shop", ArchiveQuery())
    assert key(task["key"]) == unit
    assert unit.startswith(name(task["lane"]))
    assert len(unit.encode()) > LONGEST_NAME
