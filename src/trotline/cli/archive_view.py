"""Pages that are gone from the archive, in JSON."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trotline.rules.archive_loss_note import ArchiveNote


def archive_facts(archive: "ArchiveNote | None") -> dict[str, object]:
    """`archive_lost_at_least`: there may be more."""
    if archive is None:
        return {"archive_lost": 0, "archive_lost_at_least": False}
    return {"archive_lost": archive.lost, "archive_lost_at_least": archive.incomplete}
